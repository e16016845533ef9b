//go:build !linux

package main

// postgresUsage is known on Linux only.
func postgresUsage(int) usage { return usage{} }
