//go:build !linux

package bench

// postgresUsage is known on Linux only.
func postgresUsage(int) usage { return usage{} }
