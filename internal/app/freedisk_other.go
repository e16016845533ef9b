//go:build !linux && !darwin

package app

// freeDisk is not known on this platform.
func freeDisk(string) (uint64, bool) { return 0, false }
