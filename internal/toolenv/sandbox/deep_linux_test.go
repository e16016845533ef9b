package sandbox_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// levels is a depth at which opening each folder from the top takes minutes, and which no path can
// name.
const levels = 15_000

// makeDeep makes nested folders, and keeps running if its argument asks for it.
func makeDeep(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if err := deepen(".", n, 0o700); err != nil {
		return err
	}
	if len(args) > 1 {
		time.Sleep(time.Hour)
	}
	return nil
}

// deepen makes n nested folders, each with a file beside it.
func deepen(dir string, n int, mode uint32) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	for range n {
		err := errors.Join(unix.Mkdirat(fd, "d", 0o700), unix.Mknodat(fd, "f", unix.S_IFREG|0o600, 0))
		below, openErr := unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err = errors.Join(err, openErr, unix.Fchmod(fd, mode), unix.Close(fd)); err != nil {
			return err
		}
		fd = below
	}
	return unix.Close(fd)
}

// TestDeepFolderHoldsNobodyUp runs a command that leaves folders whose traversal by path takes
// minutes: Run, Give and Remove all return.
func TestDeepFolderHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	where := folder(t, s)
	run(t, s, sandbox.Command{Argv: with("deep", strconv.Itoa(levels)), Folder: where})
	if _, err := os.Lstat(filepath.Join(where, "d", "d", "d")); err != nil {
		t.Errorf("the command did not make folders: %v", err)
	}
	if err := s.Give(where); err != nil {
		t.Error(err)
	}
	if err := s.Remove(where); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(where); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it exists: %v", err)
	}
}

// TestRemoveNeedsFewDescriptors is not parallel because the limit applies to the process.
func TestRemoveNeedsFewDescriptors(t *testing.T) {
	slow.Test(t, "runs many commands")
	s := open(t, sandbox.Config{})
	where := folder(t, s)
	if err := deepen(where, 1000, 0); err != nil {
		t.Fatal(err)
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 256, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	err := s.Remove(where)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(where); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it exists: %v", err)
	}
}

// TestRemoveLeavesWhatLinksName removes a folder with a link to a file and one to a directory.
func TestRemoveLeavesWhatLinksName(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	where, outside := folder(t, s), t.TempDir()
	kept := filepath.Join(outside, "kept")
	if err := errors.Join(
		os.WriteFile(kept, []byte("kept"), 0o600),
		os.MkdirAll(filepath.Join(where, "a", "b"), 0o700),
		os.Symlink(outside, filepath.Join(where, "link")),
		os.Symlink(outside, filepath.Join(where, "a", "b", "link")),
		os.Symlink(kept, filepath.Join(where, "a", "file")),
		s.Remove(where),
		s.Remove(where), // already removed
	); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(kept); err != nil || !bytes.Equal(text, []byte("kept")) {
		t.Errorf("%q, %v", text, err)
	}
}

// TestDirectoryMayBeALink uses a link in place of the directory for processes.
func TestDirectoryMayBeALink(t *testing.T) {
	t.Parallel()
	dir := passable(t)
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	s := open(t, sandbox.Config{Dir: link}) // closed by the test
	run(t, s, sandbox.Command{Argv: bash("mkdir -p a/b")})
}
