//go:build !linux

package app

import "syscall"

// setUserTimeout has no counterpart here; keep-alives do the work.
func setUserTimeout(string, string, syscall.RawConn) error { return nil }
