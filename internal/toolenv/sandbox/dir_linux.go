package sandbox

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

const prefix = "parley-runner-"

// scratch is a directory that lives as long as its process: locked while the process lives, and
// swept by the next process afterwards.
type scratch struct {
	path string
	lock *os.File // the directory itself
}

// newScratch makes a scratch directory below parent for the service and the users of commands, and
// removes those of dead processes.
func newScratch(parent string, commands *users, log *slog.Logger) (*scratch, error) {
	if err := os.MkdirAll(parent, 0o711); err != nil {
		return nil, err
	}
	removeStaleDirs(parent, log)
	for range 100 {
		path, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return nil, err
		}
		lock, err := claimDirectory(path) // first: another process may be sweeping
		if err != nil {
			return nil, err
		}
		if lock == nil {
			continue
		}
		s := &scratch{path, lock}
		// A command may leave a setuid program in its folder. Only this process's user and
		// the commands' users may enter the directory.
		if commands != nil {
			if err := errors.Join(os.Chown(path, -1, commands.First), os.Chmod(path, 0o710)); err != nil {
				return nil, errors.Join(err, s.close())
			}
		}
		return s, nil
	}
	return nil, errors.New("others remove it each time")
}

// claimDirectory locks a directory. It returns nil if another process has it, or removed it.
func claimDirectory(path string) (*os.File, error) {
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
	if !(&scratch{path, f}).isPresent() {
		f.Close()
		return nil, nil
	}
	return f, nil
}

// removeStaleDirs removes directories without a lock. Those of other users stay.
func removeStaleDirs(parent string, log *slog.Logger) {
	list, _ := filepath.Glob(filepath.Join(parent, prefix+"*"))
	for _, path := range list {
		info, err := os.Lstat(path)
		if err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
			continue
		}
		lock, err := claimDirectory(path)
		if err != nil || lock == nil {
			continue
		}
		if err := removeTree(path); err != nil {
			log.Warn("a directory of an earlier process cannot be removed", "path", path, "err", err)
		}
		lock.Close()
	}
}

// isPresent reports whether the path still refers to the directory.
func (s *scratch) isPresent() bool {
	locked, err := s.lock.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(s.path)
	return err == nil && os.SameFile(now, locked)
}

// close unlocks last, so that no other process sweeps the directory meanwhile.
func (s *scratch) close() error {
	defer s.lock.Close()
	if !s.isPresent() {
		return nil
	}
	return removeTree(s.path)
}
