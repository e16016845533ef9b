package e2e_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/need"
)

// TestGeneratedClients generates clients from the document that a server serves, compiles or
// type-checks them, and lets each send a message, list sessions and read an error by its type. A
// generator that cannot be installed skips its test: Parley needs none of them.
func TestGeneratedClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.key = w.parley(t, "keys", "create", "--workspace", "w", "--name", "generated", "--scope", "chat", "--scope", "sessions:read")
	s := w.serve(t, nil)
	env := append(os.Environ(), "PARLEY_URL="+s.url, "PARLEY_API_KEY="+w.key, "PARLEY_WORKSPACE=w")
	steps := func(t *testing.T, dir string, commands ...[]string) {
		t.Helper()
		var out []byte
		for _, c := range commands {
			var err error
			if out, err = runIn(t, dir, env, c); err != nil {
				t.Fatalf("%s: %v\n%s", strings.Join(c, " "), err, out)
			}
		}
		if !strings.HasSuffix(strings.TrimSpace(string(out)), "The generated client works.") {
			t.Errorf("%s", out)
		}
	}
	t.Run("go", func(t *testing.T) {
		const dir = "../../../compat/go"
		saveDocument(t, s.url, filepath.Join(dir, "openapi.json"))
		if err := os.MkdirAll(filepath.Join(dir, "parley"), 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := runIn(t, dir, env, []string{"go", "mod", "download"}); err != nil {
			need.Missing(t, "the modules of oapi-codegen are not available (%v):\n%s", err, out)
		}
		steps(t, dir, []string{"go", "generate", "."}, []string{"go", "vet", "./..."}, []string{"go", "run", "."})
	})
	t.Run("python", func(t *testing.T) {
		const dir = "../../../compat/python"
		installPython(t, dir, env)
		steps(t, dir, []string{".venv/bin/openapi-python-client", "generate", "--url", s.url + "/api/v1/openapi", "--config", "config.yaml",
			"--meta", "none", "--output-path", "parley_client", "--overwrite", "--fail-on-warning"},
			[]string{".venv/bin/mypy", "parley_client", "smoke.py"}, []string{".venv/bin/python", "smoke.py"})
	})
	t.Run("openapi-ts", func(t *testing.T) {
		const dir = "../../../compat/openapi-ts"
		steps(t, dir, []string{install(t, dir), "test"})
	})
}

// runIn runs a command in a folder, for five minutes at most.
func runIn(t *testing.T, dir string, env, command []string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, env, 5*time.Second
	return cmd.CombinedOutput()
}

// saveDocument writes the document that a server serves to a file.
func saveDocument(t *testing.T, url, path string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/v1/openapi", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := brief.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil {
		err = os.WriteFile(path, body, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// installPython installs the packages of a folder of compat for Python into its .venv.
func installPython(t *testing.T, dir string, env []string) {
	t.Helper()
	want, err := os.Stat(filepath.Join(dir, "requirements.txt"))
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.Stat(filepath.Join(dir, ".venv", "installed"))
	if err == nil && !have.ModTime().Before(want.ModTime()) {
		return
	}
	if out, err := runIn(t, "../../..", env, []string{"make", "packages-python"}); err != nil {
		need.Package(t, "python", "the packages of compat/python, which only this check needs, cannot be installed (%v):\n%s", err, out)
	}
}
