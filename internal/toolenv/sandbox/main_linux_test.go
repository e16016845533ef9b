package sandbox_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// commandUsers are the users for the commands of tests that run as root.
var commandUsers = sandbox.UserRange{First: 64001, Last: 64064}

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "attack" {
		os.Exit(attack(os.Args[2], os.Args[3:]))
	}
	if len(os.Args) > 2 && os.Args[1] == "service" {
		os.Exit(service(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// open opens a sandbox. It skips the test if there cannot be one.
func open(t *testing.T, cfg sandbox.Config) *sandbox.Sandbox {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		unavailable(t, err)
	}
	if cfg.Users.Len() == 0 {
		cfg.Users = commandUsers
	}
	s, err := sandbox.Open(t.Context(), cfg)
	if err != nil {
		unavailable(t, err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the sandbox: %v", err)
		}
	})
	return s
}

func unavailable(t *testing.T, err error) {
	t.Helper()
	need.Missing(t, "no sandbox: %v", err)
}

// folder makes a command's folder.
func folder(t *testing.T, s *sandbox.Sandbox) string {
	t.Helper()
	path, err := s.NewFolder("test")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs a command for which the sandbox must not fail, in a new folder if it has none.
func run(t *testing.T, s *sandbox.Sandbox, c sandbox.Command) (sandbox.Result, string) {
	t.Helper()
	if c.Folder == "" {
		c.Folder = folder(t, s)
	}
	var out bytes.Buffer
	if c.Output == nil {
		c.Output = &out
	}
	r, err := s.Run(t.Context(), c)
	if err != nil {
		t.Fatalf("run %s: %v", strings.Join(c.Argv, " "), err)
	}
	return r, out.String()
}

func bash(script string) []string { return []string{"bash", "-c", script} }

// passable makes a directory that every user can reach and only the test's user can write.
func passable(t *testing.T) string {
	t.Helper()
	path, err := os.MkdirTemp("", "sandbox-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
