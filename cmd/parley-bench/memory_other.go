//go:build !linux

package main

import "runtime"

// resident returns the memory that the Go runtime has from the system and uses.
func resident() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased)
}

// residentPeak is available on Linux only.
func residentPeak() int64 { return 0 }
