package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Give changes the owner of a file, or of a folder and everything in it, to the user that commands
// in that folder run as. Only commands can have made folders deeper than the limit.
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

// groupID returns the group of all commands' users.
func (s *Sandbox) groupID() int { return s.users.First }

// assignUser chooses the user that a command runs as, and makes that user the owner of the
// command's folders. The folder keeps its owner unless another command runs as that user: a new
// owner looks like a change of every file.
func (s *Sandbox) assignUser(c Command) (as *syscall.Credential, dismiss func(), err error) {
	if s.users == nil {
		return nil, func() {}, nil
	}
	user := s.users.acquire(ownerOf(c.Folder))
	for _, folder := range []string{c.Folder, c.Attachments} {
		if owner := ownerOf(folder); owner == user || owner < 0 {
			continue // bubblewrap reports the missing folder
		}
		if err := s.giveTo(folder, user); err != nil {
			s.users.release(user)
			return nil, nil, err
		}
	}
	return &syscall.Credential{Uid: uint32(user), Gid: uint32(s.groupID())}, func() { s.users.release(user) }, nil
}

// ownerOf returns the owner of a file, or -1 if it does not exist.
func ownerOf(path string) int {
	info, err := os.Lstat(path)
	if err != nil {
		return -1
	}
	return int(info.Sys().(*syscall.Stat_t).Uid)
}
