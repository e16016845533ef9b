//go:build unix

package main

import (
	"syscall"
	"time"
)

// ownUsage returns the usage of this process.
func ownUsage() usage {
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) != nil {
		return usage{}
	}
	return usage{Seconds: (time.Duration(ru.Utime.Nano()) + time.Duration(ru.Stime.Nano())).Seconds(), Known: true}
}
