package e2e_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestTypeScriptClient makes types of the document that a server gives out, compiles
// the example client with them and lets it talk to that server; the document is
// linted on the way. It is a check for developers: nothing that Parley is made of or
// needs comes from npm, so where npm is not, this is not required.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	const dir = "../../../compat/typescript"
	npm := install(t, dir)
	w := newWorld(t)
	// Without wiki:write the guide has to ask before it writes a page.
	w.parley(t, "permissions", "set", "wiki_write", "ask", "--workspace", "w")
	w.key = w.parley(t, "keys", "create", "--workspace", "w", "--name", "example", "--scope", "chat", "--scope", "sessions:read", "--scope", "secret", "--scope", "wiki:write")
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
