package canary

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Bytes is content in memory: a log, a response, a stream.
func Bytes(name string, content []byte) Source {
	return Source{name, func(search func(string, []byte)) error {
		search(name, content)
		return nil
	}}
}

// Files returns every regular file at and below a path, except those in the named directories.
func Files(name, path string, but ...string) Source {
	return Source{name, func(search func(string, []byte)) error {
		return filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // PostgreSQL creates and removes temporary files
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
