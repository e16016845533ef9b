//go:build !linux

package app

import "syscall"

// setUserTimeout does nothing on this system; keep-alives have to suffice.
func setUserTimeout(string, string, syscall.RawConn) error { return nil }
