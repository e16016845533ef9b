//go:build !linux

package dbtest

// memoryDir returns "": the server's data is on a disk.
func memoryDir() string { return "" }
