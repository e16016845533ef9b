package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
)

// TestFrameworks runs the agent frameworks of compat/frameworks, if their packages are installed.
func TestFrameworks(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs Python")
	const dir = "../../../compat/frameworks"
	for script, venv := range map[string]string{"frameworks.py": ".venv", "openai2.py": ".venv2"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(filepath.Join(dir, venv, "installed")); err != nil {
				need.Package(t, "frameworks", "the frameworks are not installed: make packages-frameworks; only this check needs them")
			}
			w := newWorld(t)
			cmd := exec.Command(filepath.Join(venv, "bin", "python"), script)
			cmd.Dir = dir
			key := w.parley(t, "keys", "create", "--workspace", "w", "--name", "frameworks", "--scope", "chat")
			cmd.Env = append(os.Environ(), "PARLEY_API_KEY="+key)
			w.endure(t, cmd, nil, 0)
		})
	}
}
