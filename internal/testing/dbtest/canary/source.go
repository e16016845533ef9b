package canary

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Bytes is what was gathered in memory: a log, an answer, a stream.
func Bytes(name string, content []byte) Source {
	return Source{name, func(search func(string, []byte)) error {
		search(name, content)
		return nil
	}}
}

// Files is every regular file at and below a path, but for those in the directories
// that are named.
func Files(name, path string, but ...string) Source {
	return Source{name, func(search func(string, []byte)) error {
		return filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // PostgreSQL's temporary files come and go
			}
			if err != nil {
				return err
			}
			for _, dir := range but {
				if d.IsDir() && d.Name() == dir {
					return filepath.SkipDir
				}
			}
			if !d.Type().IsRegular() {
				return nil
			}
			content, err := os.ReadFile(at)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil {
				search(at, content)
			}
			return err
		})
	}}
}
