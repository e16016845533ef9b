//go:build unix

package devdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Remove deletes a private server with its data; no other function deletes data. It fails while a
// process uses the server.
func Remove(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	p, err := choosePlace(dir, func(string) {})
	if err != nil {
		return err
	}
	start, err := lockFile(ctx, p.start, exclusive)
	if err != nil {
		return err
	}
	defer start.close()
	for _, path := range []string{p.users, p.guard} {
		lock, err := openLock(path)
		if err != nil {
			return err
		}
		defer lock.close()
		if free, err := lock.tryLock(exclusive); err != nil || !free {
			return errors.Join(fmt.Errorf("%s is in use", p.dir), err)
		}
	}
	orphan, err := p.findOrphan(ctx)
	if err != nil {
		return err
	}
	if orphan != 0 {
		return fmt.Errorf("%s is in use by PostgreSQL, process %d", p.dir, orphan)
	}
	return os.RemoveAll(p.dir)
}
