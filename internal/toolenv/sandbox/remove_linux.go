package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// removeTree removes a tree of any depth, even if a command closed directories to their owner. The
// command no longer has access to it.
func removeTree(path string) error {
	if err := os.Remove(path); err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	parent, err := unix.Open(filepath.Dir(path), openDir&^unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	defer unix.Close(parent)
	top, err := openDirectory(parent, filepath.Base(path))
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	defer unix.Close(top)
	r := removal{top: top, prefix: rand.Text()}
	if err := r.removeAll(); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return os.Remove(path)
}

// removal moves every directory up into the one to remove before it reads it. So each directory is
// opened and moved once, and only a few descriptors are open at any depth.
type removal struct {
	top    int
	prefix string // prefix of the moved directories, which are numbered
	moved  int
}

func (r *removal) removeAll() error {
	if err := r.emptyDirectory(r.top); err != nil {
		return err
	}
	for n := 0; n < r.moved; n++ {
		dir, err := openDirectory(r.top, r.movedName(n))
		if err != nil {
			return err
		}
		err = r.emptyDirectory(dir)
		unix.Close(dir)
		if err == nil {
			err = unix.Unlinkat(r.top, r.movedName(n), unix.AT_REMOVEDIR)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *removal) movedName(n int) string { return r.prefix + strconv.Itoa(n) }

// emptyDirectory removes the files of a directory and moves its directories away until a read finds
// nothing: removing files while names are read may hide others.
func (r *removal) emptyDirectory(dir int) error {
	for {
		fd, err := unix.Openat(dir, ".", openDir, 0)
		if err != nil {
			return err
		}
		found := false
		err = eachName(fd, func(name string) error {
			if dir == r.top && strings.HasPrefix(name, r.prefix) {
				return nil
			}
			found = true
			return r.removeEntry(dir, name)
		})
		if err != nil || !found {
			return err
		}
	}
}

// removeEntry removes a file, or moves a directory.
func (r *removal) removeEntry(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if err == nil || err == unix.ENOENT {
		return nil
	}
	if err != unix.EISDIR && err != unix.EPERM {
		return err
	}
	opened, err := openDirectory(dir, name) // moving it needs write access to it
	if err != nil {
		return err
	}
	unix.Close(opened)
	if err := unix.Renameat(dir, name, r.top, r.movedName(r.moved)); err != nil {
		return err
	}
	r.moved++
	return nil
}

// openDirectory opens a directory, even if it is closed to its owner.
func openDirectory(parent int, name string) (int, error) {
	held, err := unix.Openat(parent, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(held)
	// The mode of a descriptor of this kind cannot be changed, but that of its name in /proc can.
	if err := unix.Chmod("/proc/self/fd/"+strconv.Itoa(held), 0o700); err != nil {
		return -1, err
	}
	return unix.Openat(held, ".", openDir, 0)
}
