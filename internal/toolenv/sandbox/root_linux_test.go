package sandbox_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// TestPreparedRoot uses a system that contains only bash.
func TestPreparedRoot(t *testing.T) {
	t.Parallel()
	open(t, sandbox.Config{}) // skips the test without a sandbox
	root := passable(t)
	shell, err := exec.LookPath("bash")
	if err != nil {
		unavailable(t, err)
	}
	libraries, err := exec.Command("ldd", shell).Output()
	if err != nil {
		unavailable(t, err)
	}
	files := map[string]string{shell: "/usr/bin/bash"}
	for word := range strings.FieldsSeq(string(libraries)) {
		if strings.HasPrefix(word, "/") {
			files[word] = word
		}
	}
	for from, to := range files {
		to = filepath.Join(root, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := copyFile(from, to); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, sandbox.Config{Root: root})
	if err := s.Give(root); err != nil { // so that only the mount protects it
		t.Fatal(err)
	}
	if _,
		out := run(t, s, sandbox.Command{Argv: bash(
		"echo > /usr/bin/planted && echo done; echo > /usr/bin/bash && echo done")}); strings.Contains(out, "done") {
		t.Errorf("it is writable: %s", out)
	}
	r, out := run(t, s, sandbox.Command{Argv: bash("for f in /usr/bin/* /opt/*; do echo $f; done; echo $PWD; test -e /bin/ls")})
	if r.Exit != 1 || out != "/usr/bin/bash\n/opt/*\n/workspace\n" {
		t.Errorf("%+v, %q", r, out)
	}
}

func TestPreparedRootMustBeOne(t *testing.T) {
	t.Parallel()
	dir := passable(t)
	file := program(t, filepath.Join(dir, "file"), "")
	for name, c := range map[string]struct{ root, reason string }{
		"not there":   {filepath.Join(dir, "none"), "which is not there"},
		"a file":      {file, "which is no directory"},
		"no programs": {dir, "which has neither usr nor bin"},
		"below one":   {filepath.Join(file, "x"), "which cannot be looked into"},
	} {
		s, err := sandbox.Open(t.Context(), sandbox.Config{Root: c.root, Users: commandUsers})
		if err == nil {
			s.Close()
			t.Fatalf("%s: the sandbox opened", name)
		}
		u, ok := errors.AsType[*sandbox.Unavailable](err)
		if !ok || !strings.Contains(u.Reason, "PARLEY_SANDBOX_ROOT is "+c.root+", "+c.reason) ||
			!strings.Contains(u.Remedy, "PARLEY_SANDBOX_ROOT") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
