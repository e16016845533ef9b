//go:build !unix

package app

import "io/fs"

const openNonblock = 0

// notOwn has no counterpart here: files have no owner and mode that say who may write them.
func notOwn(info fs.FileInfo) string {
	if !info.Mode().IsRegular() {
		return "is not a regular file"
	}
	return ""
}
