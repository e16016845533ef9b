package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

func owner(t *testing.T, path string) int {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Sys().(*syscall.Stat_t).Uid)
}

// TestCommandsAtOnceAreDifferentUsers starts a command in the folder of a user that runs another
// command.
func TestCommandsAtOnceAreDifferentUsers(t *testing.T) {
	t.Parallel()
	need.Root(t)
	s := open(t, sandbox.Config{Users: sandbox.UserRange{First: 64100, Last: 64101}})
	first, other := folder(t, s), folder(t, s)
	same, sent := folder(t, s), folder(t, s)
	if owner(t, first) != owner(t, same) || owner(t, first) == owner(t, other) {
		t.Fatalf("the folders are those of %d, %d and %d", owner(t, first), owner(t, other), owner(t, same))
	}
	file := filepath.Join(same, "a", "file")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("restored"), 0o600),
		os.WriteFile(filepath.Join(sent, "file"), []byte(" and sent"), 0o600), s.Give(same), s.Give(sent)); err != nil {
		t.Fatal(err)
	}

	out := &signal{on: "ready", came: make(chan struct{})}
	ended := make(chan error)
	go func() {
		_, err := s.Run(t.Context(), sandbox.Command{Argv: bash("echo ready; until test -e stop; do sleep 0.01; done"), Folder: first,
			Output: out})
		ended <- err
	}()
	wait.Receive(t, "the output", out.came)
	r, text := run(t, s, sandbox.Command{Argv: bash("cat a/file attachments/file; echo > made"), Folder: same, Attachments: sent})
	if r.Exit != 0 || text != "restored and sent" {
		t.Errorf("%+v, %q", r, text)
	}
	for _, path := range []string{same, file, filepath.Join(same, "made")} {
		if owner(t, path) != owner(t, other) {
			t.Errorf("%s belongs to user %d, and another command runs as that user", path, owner(t, path))
		}
	}
	if err := os.WriteFile(filepath.Join(first, "stop"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := wait.Receive(t, "the end", ended); err != nil {
		t.Error(err)
	}
}
