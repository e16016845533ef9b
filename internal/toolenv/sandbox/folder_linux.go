package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const attachments = "attachments"

// NewFolder makes an empty folder that only commands can read. name becomes a part of its own name.
func (s *Sandbox) NewFolder(name string) (string, error) {
	if !filepath.IsLocal(name) || filepath.Base(name) != name {
		return "", fmt.Errorf("a folder cannot be named %q", name)
	}
	dir, _, err := s.choosePaths()
	if err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	path, err := os.MkdirTemp(dir, name+"-")
	if err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	return path, s.Give(path)
}

// Remove removes a folder of any depth, whatever modes a command gave to its contents.
func (s *Sandbox) Remove(folder string) error { return removeTree(folder) }

// prepareFolder makes the mount point of the attachments. A command may have put something else
// there.
func (s *Sandbox) prepareFolder(c Command) error {
	switch {
	case len(c.Argv) == 0:
		return errors.New("there is no command")
	case c.Folder == "":
		return errors.New("there is no folder")
	case c.Attachments == "":
		return nil
	}
	root, err := os.OpenRoot(c.Folder)
	if err != nil {
		return err
	}
	defer root.Close()
	if info, err := root.Lstat(attachments); err == nil && info.IsDir() {
		return nil
	}
	if err := errors.Join(ignoreGone(root.Remove(attachments)), root.Mkdir(attachments, 0o755)); err != nil {
		return err
	}
	return s.Give(filepath.Join(c.Folder, attachments))
}
