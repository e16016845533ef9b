//go:build unix && !linux

package devdb

import "syscall"

// dieWithParent has no counterpart here. PostgreSQL outlives a guard that was
// killed, and the next Start adopts it.
func dieWithParent(*syscall.SysProcAttr) {}
