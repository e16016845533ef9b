package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/parley-server/parley/internal/testing/slow"
)

// TestFrameworks runs the agent frameworks of compat/frameworks, if their packages are installed.
func TestFrameworks(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs Python")
	const dir = "../../../compat/frameworks"
	if _, err := os.Stat(filepath.Join(dir, ".venv", "installed")); err != nil {
		t.Skip("the frameworks are not installed: make packages-frameworks; only this check needs them, and they are never required")
	}
	w := newWorld(t)
	cmd := exec.Command(filepath.Join(".venv", "bin", "python"), "frameworks.py")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PARLEY_API_KEY="+w.parley(t, "keys", "create", "--workspace", "w", "--name", "frameworks", "--scope", "chat"))
	w.endure(t, cmd, nil, 0)
}
