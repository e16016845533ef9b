package sandbox_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// program writes a script.
func program(t *testing.T, path, script string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWithoutBubblewrapThereIsNoSandbox(t *testing.T) {
	t.Parallel()
	dir := passable(t)
	for name, c := range map[string]struct{ bwrap, reason, remedy string }{
		"missing": {filepath.Join(dir, "none"), "was not found", "apt install bubblewrap"},
		"not it":  {"/bin/false", "is not bubblewrap 0.8 or newer", "apt install bubblewrap"},
		"old":     {program(t, filepath.Join(dir, "old"), "echo bubblewrap 0.7.0"), "0.7.0", "apt install bubblewrap"},
		"refuses": {program(t, filepath.Join(dir, "refuses"),
			`test $1 = --version && exec echo bubblewrap 0.8.0; echo "bwrap: Can't mount proc on /newroot/proc: Operation not `+
				`permitted" >&2; exit 1`), "Can't mount proc", "systempaths=unconfined"},
		"does nothing": {program(t, filepath.Join(dir, "nothing"), `test $1 = --version && exec echo bubblewrap 0.8.0; exit 0`),
			"did not begin", "by hand"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := sandbox.Open(t.Context(), sandbox.Config{Bwrap: c.bwrap, Users: commandUsers, Dir: dir})
			if err == nil {
				s.Close()
				t.Fatal("the sandbox opened")
			}
			u, ok := errors.AsType[*sandbox.Unavailable](err)
			if !ok || !strings.Contains(u.Reason, c.reason) || !strings.Contains(u.Remedy, c.remedy) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestRootNeedsAnotherUser(t *testing.T) {
	t.Parallel()
	need.Root(t)
	for _, none := range []sandbox.UserRange{{}, {First: -1, Last: 5}} {
		s, err := sandbox.Open(t.Context(), sandbox.Config{Users: none})
		if err == nil {
			s.Close()
			t.Fatal("the sandbox opened")
		}
		if u, ok := errors.AsType[*sandbox.Unavailable](err); !ok || !strings.Contains(u.Remedy, "PARLEY_SANDBOX_UID") {
			t.Errorf("%v", err)
		}
	}
}

func TestDirectoryMustBeReachable(t *testing.T) {
	t.Parallel()
	need.Root(t)
	closed := t.TempDir() // below a directory of the test's user alone
	s, err := sandbox.Open(t.Context(), sandbox.Config{Users: commandUsers, Dir: closed})
	if err == nil {
		s.Close()
		t.Fatal("the sandbox opened")
	}
	if u, ok := errors.AsType[*sandbox.Unavailable](err); !ok || !strings.Contains(u.Remedy, "PARLEY_RUNNER_DIR") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(closed); err != nil || len(left) > 0 {
		t.Errorf("Open left %v, %v", left, err)
	}
}

// TestCommandsThatCannotStart covers failures that must not look like failures of a command.
func TestCommandsThatCannotStart(t *testing.T) {
	t.Parallel()
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		unavailable(t, err)
	}
	dir := passable(t)
	mine := filepath.Join(dir, "bwrap")
	if err := copyFile(bwrap, mine); err != nil {
		t.Fatal(err)
	}
	s := open(t, sandbox.Config{Bwrap: mine})
	where := folder(t, s)
	touch := sandbox.Command{Argv: bash("touch ran"), Folder: where, Serve: held}
	fails := func(name string, c sandbox.Command, want string) {
		t.Helper()
		var failure *sandbox.Failure
		if r, err := s.Run(t.Context(), c); !errors.As(err, &failure) || !strings.Contains(failure.Reason, want) || r != (sandbox.Result{}) {
			t.Errorf("%s: %+v, %v; want %q", name, r, err, want)
		}
	}
	fails("no command", sandbox.Command{Folder: where}, "there is no command")
	fails("no folder", sandbox.Command{Argv: bash("true")}, "there is no folder")
	fails("a folder that is gone", sandbox.Command{Argv: bash("true"), Folder: where + "x"}, "No such file")
	fails("an unknown program", sandbox.Command{Argv: []string{"frobnicate"}, Folder: where}, "start frobnicate: no such file")
	fails("an unknown path", sandbox.Command{Argv: []string{"/frobnicate"}, Folder: where}, "start /frobnicate: no such file")
	fails("no program", sandbox.Command{Argv: []string{"/etc/passwd"}, Folder: where}, "start /etc/passwd: permission denied")
	fails("a NUL", sandbox.Command{Argv: []string{"touch", "ran\x00aecho"}, Folder: where}, "NUL")
	fails("a NUL in a variable", sandbox.Command{Argv: bash("true"), Env: []string{"A=b\x00aecho"}, Folder: where}, "NUL")

	for _, script := range []string{"exit 1", "exit 0", "echo no >&2; exit 3", "kill -9 $$"} {
		if err := os.Remove(mine); err != nil {
			t.Fatal(err)
		}
		program(t, mine, script)
		fails("a bwrap that does "+script, touch, "it did not begin")
	}
	if err := os.Remove(mine); err != nil {
		t.Fatal(err)
	}
	fails("no bwrap", touch, "start bubblewrap")
	if list, err := os.ReadDir(where); err != nil || len(list) > 0 {
		t.Errorf("something ran: %v, %v", list, err)
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
