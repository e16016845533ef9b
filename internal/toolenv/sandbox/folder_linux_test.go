package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

func TestFolders(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	for _, name := range []string{"../x", "a/b", "..", "/", ""} {
		if path, err := s.NewFolder(name); err == nil {
			t.Errorf("%q made %s", name, path)
		}
	}
	where := folder(t, s)
	if info, err := os.Stat(where); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	// The command owns the files that the service writes, and links are not followed.
	outside := filepath.Join(t.TempDir(), "outside")
	if err := errors.Join(
		os.MkdirAll(filepath.Join(where, "a", "b"), 0o700),
		os.WriteFile(filepath.Join(where, "a", "b", "file"), []byte("restored"), 0o600),
		os.WriteFile(outside, nil, 0o600),
		os.Symlink(outside, filepath.Join(where, "link")),
		s.Give(where),
	); err != nil {
		t.Fatal(err)
	}
	if r, out := run(t, s, sandbox.Command{Argv: bash("cat a/b/file && echo more >> a/b/file && rm -r a"), Folder: where}); r.Exit != 0 ||
		out != "restored" {
		t.Errorf("%+v, %s", r, out)
	}
	if info, err := os.Stat(outside); err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		t.Errorf("the target of a link changed its owner, too: %+v, %v", info, err)
	}
}

func TestFoldersCanBeRemoved(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	where := folder(t, s)
	run(t, s, sandbox.Command{Argv: bash("mkdir -p a/b/c && touch a/b/c/d && chmod 0 a/b/c a/b a ."), Folder: where})
	if err := s.Remove(where); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(where); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it exists: %v", err)
	}
}

// TestOneSessionDoesNotSeeAnother runs two commands at a time as the same user.
func TestOneSessionDoesNotSeeAnother(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{Users: sandbox.UserRange{First: 64001, Last: 64001}})
	out := &signal{on: "ready", came: make(chan struct{})}
	secret := newMark()
	ended := make(chan error)
	stay, stop := folder(t, s), make(chan struct{})
	go func() {
		_, err := s.Run(t.Context(), sandbox.Command{
			Argv: bash("echo canary > /tmp/mine; echo canary > mine; echo ready; until test -e stop; do sleep 0.01; done; cat /tmp/mine mine"),
			Env:  []string{secret}, Folder: stay, Output: out,
		})
		ended <- err
		close(stop)
	}()
	wait.Receive(t, "the output", out.came)
	_, seen := run(t, s, sandbox.Command{Argv: bash("cat /proc/*/environ /tmp/* /workspace/* /dev/shm/* /proc/*/cwd/mine; ls " + stay +
		"; kill -9 -1; ps ax")})
	if strings.Contains(seen, "canary") || strings.Contains(seen, secret) {
		t.Errorf("it saw %s", seen)
	}
	if err := os.WriteFile(filepath.Join(stay, "stop"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := wait.Receive(t, "the end", ended); err != nil {
		t.Error(err)
	}
	wait.Receive(t, "the end", stop)
	if got := out.text.String(); got != "ready\ncanary\ncanary\n" {
		t.Errorf("the other command was disturbed: %q", got)
	}
}
