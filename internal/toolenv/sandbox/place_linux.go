package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/parley-server/parley/internal/toolenv/scratch"
)

// choosePaths returns the directory of this process and the executable for commands. It recreates
// missing ones: a cleaner of temporary directories may remove them while the service runs.
func (s *Sandbox) choosePaths() (dir, executable string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scratch != nil && !s.scratch.IsPresent() {
		s.log.Warn("the directory for the files of commands was removed; there will be another", "dir", s.scratch.Path())
		_ = s.scratch.Close()
		s.scratch, s.executable = nil, ""
	}
	if s.scratch == nil {
		if s.scratch, err = s.newScratch(); err != nil {
			return "", "", err
		}
	}
	if _, err := os.Lstat(s.executable); err != nil {
		if s.executable, err = s.ownExecutable(); err != nil {
			return "", "", fmt.Errorf("copy the executable for the sandbox: %w", err)
		}
	}
	return s.scratch.Path(), s.executable, nil
}

// newScratch makes a directory that only the users of the service and of commands may enter: a
// command may leave a setuid program in its folder.
func (s *Sandbox) newScratch() (*scratch.Dir, error) {
	d, err := scratch.New(s.dir, "parley-runner-", removeTree, s.log)
	if err != nil {
		return nil, unavailableDir(err)
	}
	switch {
	case s.users == nil:
		return d, nil
	case !s.isReachable(s.dir):
		err = unavailablePath(s.users.UserRange, d.Path())
	default:
		if err = errors.Join(os.Chown(d.Path(), -1, s.users.First), os.Chmod(d.Path(), 0o710)); err == nil {
			return d, nil
		}
		err = unavailableDir(err)
	}
	_ = d.Close()
	return nil, err
}

// ownExecutable returns the path of the service's executable, or of a copy that the commands' user
// can execute.
func (s *Sandbox) ownExecutable() (string, error) {
	path, err := os.Executable()
	if err != nil || s.isReachable(path) {
		return path, err
	}
	copied := filepath.Join(s.scratch.Path(), "init")
	_ = os.Remove(copied) // left by a failed attempt
	if info, err := os.Stat(path); err == nil && info.Mode()&0o005 == 0o005 && os.Link(path, copied) == nil {
		return copied, nil
	}
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", err
	}
	defer from.Close()
	to, err := os.OpenFile(copied, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return "", err
	}
	defer to.Close()
	if _, err := io.Copy(to, from); err != nil {
		return "", err
	}
	if err := to.Chmod(0o755); err != nil { // regardless of the umask
		return "", err
	}
	return copied, to.Close()
}

// isReachable reports whether the commands' user may reach path and read it. It checks the
// permissions of others.
func (s *Sandbox) isReachable(path string) bool {
	if s.users == nil {
		return true
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	need := os.FileMode(0o005)
	for {
		info, err := os.Stat(path)
		if err != nil || info.Mode()&need != need && !info.IsDir() || info.IsDir() && info.Mode()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(path)
		if parent == path {
			return true
		}
		path = parent
	}
}
