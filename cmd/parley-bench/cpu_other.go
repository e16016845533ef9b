//go:build !linux

package main

// postgresUsage is available on Linux only.
func postgresUsage(int) usage { return usage{} }
