//go:build unix && !linux

package devdb

import "syscall"

// dieWithParent does nothing on this system. PostgreSQL outlives a guard that was killed, and the
// next Start adopts it.
func dieWithParent(*syscall.SysProcAttr) {}
