//go:build !unix

package app

import "io/fs"

const openNonblock = 0

// notOwn checks only the kind of a file on this system: files have no owner and mode that control
// write access.
func notOwn(info fs.FileInfo) string {
	if !info.Mode().IsRegular() {
		return "is not a regular file"
	}
	return ""
}
