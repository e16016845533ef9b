package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

const prefix = "parley-runner-"

// scratch is a directory that goes with its process: locked while that lives, and swept
// by the next one when it is gone.
type scratch struct {
	path string
	lock *os.File // the directory itself
}

// newScratch makes one below parent and removes those of processes that are gone.
func newScratch(parent string) (*scratch, error) {
	parent, err := filepath.Abs(cmp.Or(parent, os.TempDir()))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(parent, 0o711); err != nil {
		return nil, err
	}
	if err := sweep(parent); err != nil {
		return nil, fmt.Errorf("remove what is left of earlier processes: %w", err)
	}
	for range 100 {
		path, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return nil, err
		}
		// Others pass through, and see nothing but what they know the name of.
		if err := os.Chmod(path, 0o711); err != nil {
			return nil, err
		}
		lock, err := claim(path)
		if lock != nil || err != nil {
			return &scratch{path, lock}, err
		}
	}
	return nil, errors.New("others remove it each time")
}

// claim locks a directory. It returns nil where another process has it, or removed it.
func claim(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if err == unix.EWOULDBLOCK {
			return nil, nil
		}
		return nil, err
	}
	locked, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	if now, err := os.Lstat(path); err != nil || !os.SameFile(now, locked) {
		f.Close()
		return nil, nil
	}
	return f, nil
}

// sweep removes directories that nobody holds. Those of other users stay.
func sweep(parent string) error {
	list, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range list {
		info, err := os.Lstat(path)
		if err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
			continue
		}
		lock, err := claim(path)
		if err != nil || lock == nil {
			continue
		}
		err = remove(path)
		lock.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// close unlocks last, so that nobody sweeps what is just being removed.
func (s *scratch) close() error {
	defer s.lock.Close()
	return remove(s.path)
}

// remove removes a tree, also where the command closed directories to their owner.
func remove(path string) error {
	if os.RemoveAll(path) == nil {
		return nil
	}
	_ = os.Chmod(path, 0o700)
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && err == nil {
			return root.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}
