package e2e_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestTypeScriptClient generates types from the document that a server serves, compiles the example
// client with them and runs it against that server; it also lints the document. It is a check for
// developers: Parley itself needs nothing from npm, so without npm it is not required.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	const dir = "../../../compat/typescript"
	npm := install(t, dir)
	w := newWorld(t)
	// Without wiki:write the guide needs an approval to write a page.
	w.parley(t, "permissions", "set", "wiki_write", "ask", "--workspace", "w")
	w.key = w.parley(t, "keys", "create", "--workspace", "w", "--name", "example", "--scope", "chat", "--scope", "sessions:read", "--scope",
		"secret", "--scope", "wiki:write")
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
