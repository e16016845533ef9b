//go:build !linux

package main

import "runtime"

// resident is what the Go runtime has of the system and uses.
func resident() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased)
}

// residentPeak is known on Linux only.
func residentPeak() int64 { return 0 }
