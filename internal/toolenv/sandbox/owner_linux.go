package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Give makes a file, or a folder and all in it, the property of the user that commands in
// that folder run as. Only commands can have made what is deeper than they may keep.
func (s *Sandbox) Give(path string) error {
	if s.users == nil {
		return nil // the user that runs the commands made it
	}
	user := ownerOf(path)
	if !s.users.has(user) {
		user = ownerOf(filepath.Dir(path))
	}
	if !s.users.has(user) {
		user = s.users.assign()
	}
	return s.giveTo(path, user)
}

func (s *Sandbox) giveTo(path string, user int) error {
	if err := os.Lchown(path, user, s.groupID()); err != nil {
		return err
	}
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return err
	}
	err := walkFolder(path, func(dir int, name string, _ *unix.Stat_t) error {
		return ignoreGone(unix.Fchownat(dir, name, user, s.groupID(), unix.AT_SYMLINK_NOFOLLOW))
	})
	if err != nil && !errors.Is(err, errDeep) {
		return fmt.Errorf("give a folder: %w", err)
	}
	return nil
}

// groupID is the group of all commands' users.
func (s *Sandbox) groupID() int { return s.users.First }

// assignUser chooses the user that a command runs as, and makes that the owner of the command's
// folders. The folder keeps its owner unless another command runs as that user: a new owner
// looks like a change of every file.
func (s *Sandbox) assignUser(c Command) (as *syscall.Credential, dismiss func(), err error) {
	if s.users == nil {
		return nil, func() {}, nil
	}
	user := s.users.acquire(ownerOf(c.Folder))
	for _, folder := range []string{c.Folder, c.Attachments} {
		if owner := ownerOf(folder); owner == user || owner < 0 {
			continue // bubblewrap says which folder is missing
		}
		if err := s.giveTo(folder, user); err != nil {
			s.users.release(user)
			return nil, nil, err
		}
	}
	return &syscall.Credential{Uid: uint32(user), Gid: uint32(s.groupID())}, func() { s.users.release(user) }, nil
}

// ownerOf is the owner of a file, or -1 where there is none.
func ownerOf(path string) int {
	info, err := os.Lstat(path)
	if err != nil {
		return -1
	}
	return int(info.Sys().(*syscall.Stat_t).Uid)
}
