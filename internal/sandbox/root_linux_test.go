package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/sandbox"
)

// TestPreparedRoot has a system of nothing but bash.
func TestPreparedRoot(t *testing.T) {
	t.Parallel()
	open(t, sandbox.Config{}) // or skips
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
	if err := s.Give(root); err != nil { // so that nothing but the mount protects it
		t.Fatal(err)
	}
	if _, out := run(t, s, sandbox.Command{Argv: bash("echo > /usr/bin/planted && echo done; echo > /usr/bin/bash && echo done")}); strings.Contains(out, "done") {
		t.Errorf("it can be written: %s", out)
	}
	r, out := run(t, s, sandbox.Command{Argv: bash("for f in /usr/bin/* /opt/*; do echo $f; done; echo $PWD; test -e /bin/ls")})
	if r.Exit != 1 || out != "/usr/bin/bash\n/opt/*\n/workspace\n" {
		t.Errorf("%+v, %q", r, out)
	}
}
