//go:build unix

package app

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes a lock that the kernel takes back when its process dies. held is
// false where another has it.
func tryLock(path string) (release func(), held bool, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
		f.Close()
		return nil, false, err
	}
	held = err == nil
	return func() {
		if held { // a child that is just being forked still has the file open
			_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
		}
		f.Close()
	}, held, nil
}
