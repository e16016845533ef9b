//go:build !unix

package scratch

import (
	"io/fs"
	"os"
)

// claimDirectory opens a directory; this system cannot lock it.
func claimDirectory(path string) (*os.File, error) { return os.Open(path) }

// isOurs reports that a file belongs to another process: without locks, that cannot be known.
func isOurs(fs.FileInfo) bool { return false }
