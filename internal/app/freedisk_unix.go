//go:build linux || darwin

package app

import "syscall"

// freeDisk returns the bytes that this process may still write to the disk of a directory.
func freeDisk(dir string) (free uint64, ok bool) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return 0, false
	}
	return stat.Bavail * uint64(stat.Bsize), true
}
