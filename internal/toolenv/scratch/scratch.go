// Package scratch makes directories for files that live as long as the process.
//
// It promises that a directory is removed when it is closed, or, after a process that was killed,
// when the next one makes its own below the same parent.
package scratch

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// Dir is a directory that is locked while its process lives.
type Dir struct {
	path   string
	lock   *os.File // the directory itself
	remove Remover
}

// Remover removes a directory with everything in it.
type Remover func(path string) error

// New makes a directory below parent that only the user of this process can enter. Its name begins with
// prefix. New removes the directories of dead processes of that user whose names begin so. A parent
// that is missing is made.
func New(parent, prefix string, remove Remover, log *slog.Logger) (*Dir, error) {
	if err := os.MkdirAll(parent, 0o711); err != nil {
		return nil, err
	}
	removeStale(filepath.Join(parent, prefix), remove, log)
	for range 100 {
		path, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return nil, err
		}
		lock, err := claimDirectory(path) // first: another process may be removing
		if err != nil {
			return nil, errors.Join(err, os.Remove(path))
		}
		if lock != nil {
			return &Dir{path, lock, remove}, nil
		}
	}
	return nil, fmt.Errorf("other processes removed each of 100 new directories below %s", parent)
}

// removeStale removes the directories without a lock whose paths begin with prefix. Those of other
// users stay.
func removeStale(prefix string, remove Remover, log *slog.Logger) {
	list, _ := filepath.Glob(prefix + "*")
	for _, path := range list {
		info, err := os.Lstat(path)
		if err != nil || !isOurs(info) {
			continue
		}
		lock, err := claimDirectory(path)
		if err != nil || lock == nil {
			continue
		}
		if err := remove(path); err != nil {
			log.Warn("a directory of an earlier process cannot be removed", "path", path, "err", err)
		}
		lock.Close()
	}
}

// Path returns the path of the directory.
func (d *Dir) Path() string { return d.path }

// IsPresent reports whether the path still refers to the directory: a cleaner of temporary files may
// have removed it.
func (d *Dir) IsPresent() bool { return isSame(d.path, d.lock) }

func isSame(path string, open *os.File) bool {
	locked, err := open.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(path)
	return err == nil && os.SameFile(now, locked)
}

// Close removes the directory. It unlocks last, so that no other process removes it meanwhile.
func (d *Dir) Close() error {
	defer d.lock.Close()
	if !d.IsPresent() {
		return nil
	}
	return d.remove(d.path)
}
