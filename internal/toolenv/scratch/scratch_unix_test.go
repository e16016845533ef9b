//go:build unix

package scratch_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-server/parley/internal/toolenv/scratch"
)

// open makes a directory with a file in it.
func open(t *testing.T, parent string) *scratch.Dir {
	t.Helper()
	d, err := scratch.New(parent, "parley-test-", os.RemoveAll, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	fill(t, d.Path())
	return d
}

func fill(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestDirectoriesOfDeadProcessesAreRemoved makes a directory beside that of a dead process, which
// no process has locked, that of another living one, and one with another name.
func TestDirectoriesOfDeadProcessesAreRemoved(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "missing")
	living := open(t, parent)
	dead, other := filepath.Join(parent, "parley-test-1"), filepath.Join(parent, "other-1")
	fill(t, dead)
	fill(t, other)
	d := open(t, parent)
	if exists(dead) {
		t.Error("the directory of a dead process is left")
	}
	for _, path := range []string{living.Path(), other, d.Path()} {
		if !exists(filepath.Join(path, "file")) {
			t.Errorf("%s was removed", path)
		}
	}
	info, err := os.Stat(d.Path())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("other users may enter: %v", info.Mode())
	}
}

// TestClosedDirectoryIsRemoved closes a directory, and one whose path is another directory by now.
func TestClosedDirectoryIsRemoved(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	d, replaced := open(t, parent), open(t, parent)
	if err := os.RemoveAll(replaced.Path()); err != nil {
		t.Fatal(err)
	}
	fill(t, replaced.Path())
	if !d.IsPresent() || replaced.IsPresent() {
		t.Errorf("the directory is present: %v, the replaced one: %v", d.IsPresent(), replaced.IsPresent())
	}
	for _, d := range []*scratch.Dir{d, replaced} {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if exists(d.Path()) {
		t.Error("a closed directory is left")
	}
	if !exists(replaced.Path()) {
		t.Error("a directory that another process made was removed")
	}
}
