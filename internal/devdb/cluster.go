//go:build unix

package devdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// majorVersion returns the version of the data directory, 0 if there is none.
func (p place) majorVersion() (int, error) {
	text, err := os.ReadFile(filepath.Join(p.data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(p.data); err == nil {
			return 0, fmt.Errorf("%s is not a PostgreSQL data directory; move it away", p.data)
		}
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("%s: unknown version %q", p.data, strings.TrimSpace(string(text)))
	}
	return n, nil
}

// createCluster creates the data directory. It removes the remains of a crashed attempt.
func (p place) createCluster(prog programs, disposable bool) error {
	if err := os.RemoveAll(p.fresh); err != nil {
		return err
	}
	if err := p.as.makePrivate(p.fresh); err != nil {
		return err
	}
	args := []string{"-D", p.fresh, "-U", User, "--auth=trust", "--encoding=UTF8", "--lc-collate=C"}
	if disposable {
		args = append(args, "--no-sync")
	}
	// C.UTF-8 classifies letters beyond ASCII. C is the fallback if it does not exist.
	out, err := p.runInitdb(prog, append(args, "--lc-ctype=C.UTF-8"))
	if err != nil && strings.Contains(out, "locale") {
		out, err = p.runInitdb(prog, append(args, "--lc-ctype=C"))
	}
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, strings.TrimSpace(out))
	}
	if err := os.Rename(p.fresh, p.data); err != nil {
		return err
	}
	return syncDir(p.dir)
}

func (p place) runInitdb(prog programs, args []string) (string, error) {
	cmd := exec.Command(filepath.Join(prog.dir, "initdb"), args...)
	cmd.Dir = p.fresh
	p.as.applyTo(cmd)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
