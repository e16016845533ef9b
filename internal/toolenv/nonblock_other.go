//go:build !unix

package toolenv

const nonblock = 0
