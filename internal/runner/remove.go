package runner

import (
	"io/fs"
	"os"
	"path/filepath"
)

// removeAll removes a directory that a command has had: it may hold directories that
// nobody can enter.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
