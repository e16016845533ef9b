package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTypeScriptClient makes types of the document that a server gives out, compiles
// the example client with them and lets it talk to that server; the document is
// linted on the way. It is a check for developers: nothing that Parley is made of or
// needs comes from npm, so where npm is not, this is not required.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	const why = "; it is needed for this check alone, and never required"
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("no npm: install Node.js 20.19 or newer" + why)
	}
	const dir = "../../compat/typescript"
	if !installed(dir) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, npm, "ci", "--fetch-retries=1", "--fetch-timeout=20000")
		cmd.Dir, cmd.WaitDelay = dir, 5*time.Second
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("npm cannot install the packages (%v)%s:\n%s", err, why, out)
		}
	}
	w := newWorld(t)
	// Without wiki:write the guide has to ask before it writes a page.
	w.key = w.parley(t, "keys", "create", "--workspace", "w", "--name", "example", "--scope", "chat", "--scope", "sessions:read", "--scope", "secret")
	w.parley(t, "secrets", "set", "EXAMPLE_TOKEN", "--workspace", "w", "--host", "example.com", "--no-value")
	s := w.serve(t, nil)
	cmd := exec.Command(npm, "test")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PARLEY_URL="+s.url, "PARLEY_API_KEY="+w.key, "PARLEY_WORKSPACE=w")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "The example has ended well.") {
		t.Errorf("npm test: %v", err)
	}
}

// installed reports whether the packages are those of the lock file.
func installed(dir string) bool {
	want, err := os.Stat(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return false
	}
	have, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json"))
	return err == nil && !have.ModTime().Before(want.ModTime())
}
