//go:build unix

package devdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const (
	shared    = syscall.LOCK_SH
	exclusive = syscall.LOCK_EX
)

const poll = 10 * time.Millisecond

// flock is a lock that the kernel releases when its process dies.
type flock struct {
	file *os.File
}

func openLock(path string) (*flock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &flock{f}, nil
}

// tryLock reports whether the lock was free.
func (l *flock) tryLock(kind int) (bool, error) {
	for {
		err := syscall.Flock(int(l.file.Fd()), kind|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, fmt.Errorf("lock %s: %w", l.file.Name(), err)
		}
	}
}

// waitLock blocks until the lock is free.
func (l *flock) waitLock(kind int) error {
	for {
		err := syscall.Flock(int(l.file.Fd()), kind)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func (l *flock) unlock() { syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN) }

// close unlocks first: a child that is being forked still has the file open.
func (l *flock) close() {
	l.unlock()
	l.file.Close()
}

// TryLock takes a lock that the kernel releases when its process dies. held is false if another
// process has it.
func TryLock(path string) (release func(), held bool, err error) {
	l, err := openLock(path)
	if err != nil {
		return nil, false, err
	}
	if held, err = l.tryLock(exclusive); err != nil {
		l.close()
		return nil, false, err
	}
	return l.close, held, nil
}

// lockFile polls, because a blocked flock cannot be canceled.
func lockFile(ctx context.Context, path string, kind int) (*flock, error) {
	l, err := openLock(path)
	if err != nil {
		return nil, err
	}
	err = pollUntil(ctx, func() (bool, error) { return l.tryLock(kind) })
	if err != nil {
		l.close()
		return nil, fmt.Errorf("wait for %s: %w", path, err)
	}
	return l, nil
}

// pollUntil polls done until it returns true, or ctx ends.
func pollUntil(ctx context.Context, done func() (bool, error)) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
