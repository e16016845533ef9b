package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
)

var installing sync.Mutex // two tests may install the same packages

// install installs the packages of a folder of compat if npm is available, and returns npm. Parley
// itself needs nothing from npm.
func install(t *testing.T, dir string) string {
	t.Helper()
	slow.Test(t, "runs npm")
	npm, err := exec.LookPath("npm")
	if err != nil {
		need.Package(t, "npm", "no npm: install Node.js 20.19 or newer, for this check alone")
	}
	installing.Lock()
	defer installing.Unlock()
	if !installed(dir) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, npm, "ci", "--fetch-retries=1", "--fetch-timeout=20000")
		cmd.Dir, cmd.WaitDelay = dir, 5*time.Second
		if out, err := cmd.CombinedOutput(); err != nil {
			need.Package(t, "npm", "npm cannot install the packages of this check (%v):\n%s", err, out)
		}
	}
	return npm
}

// installed reports whether the packages match the lock file.
func installed(dir string) bool {
	want, err := os.Stat(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return false
	}
	have, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json"))
	return err == nil && !have.ModTime().Before(want.ModTime())
}
