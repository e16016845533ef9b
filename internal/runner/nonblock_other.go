//go:build !unix

package runner

const nonblock = 0
