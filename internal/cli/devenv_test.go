package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-server/parley/internal/testing/need"
)

// TestDevEnvMustBeOwnClosedAndLocal checks that a foreign folder cannot direct a command, and the
// data it sends, to another server: dev.env is used only if only this user could have written it,
// and only for this machine.
func TestDevEnvMustBeOwnClosedAndLocal(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.NotFound(w, nil)
	}))
	t.Cleanup(server.Close)
	for name, c := range map[string]struct {
		url, says string
		change    func(t *testing.T, path string) error
	}{
		"own": {server.URL, "", nil},
		"world-written": {server.URL, "is open to other users (mode 0666)", func(_ *testing.T, path string) error {
			return os.Chmod(path, 0o666)
		}},
		"readable": {server.URL, "is open to other users (mode 0644)", func(_ *testing.T, path string) error {
			return os.Chmod(path, 0o644)
		}},
		"another's": {server.URL, "belongs to the user id 65534", func(t *testing.T, path string) error {
			need.Root(t)
			return os.Chown(path, 65534, 65534)
		}},
		"a directory":    {server.URL, "is not a regular file", func(_ *testing.T, path string) error { return remake(path) }},
		"another server": {"http://192.0.2.1:8080", `the server "http://192.0.2.1:8080", which is not on this machine`, nil},
		"another name":   {"https://127.0.0.1.evil.example", "not on this machine", nil},
		"userinfo":       {"http://127.0.0.1@192.0.2.1", "not on this machine", nil},
		"no scheme":      {"unix:/tmp/x", "not on this machine", nil},
	} {
		t.Run(name, func(t *testing.T) {
			sh := shell{t: t, dir: t.TempDir(), environ: []string{"PARLEY_API_KEY=", "PARLEY_URL=", "PARLEY_WORKSPACE="}}
			path := filepath.Join(sh.dir, ".parley", "dev.env")
			if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			text := "export PARLEY_URL='" + c.url + "'\nexport PARLEY_WORKSPACE='demo'\nexport PARLEY_API_KEY='prl_x'\n"
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				if err := c.change(t, path); err != nil {
					t.Fatal(err)
				}
			}
			before := asked.Load()
			_, errs, code := sh.run("sessions", "list")
			if c.says == "" {
				if asked.Load() == before {
					t.Errorf("the server was not asked: %s", errs)
				}
				return
			}
			if code != 2 || !strings.Contains(errs, c.says) || asked.Load() != before {
				t.Errorf("exit code %d, %d requests: %s", code, asked.Load()-before, errs)
			}
		})
	}
}

// remake replaces a file by a directory.
func remake(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.Mkdir(path, 0o700)
}
