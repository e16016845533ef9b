package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/app/demo"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

// TestToolsOfDevelopmentModeAreCalledByItsServer refreshes and tests a tool server that only the
// server of dev.env reaches: in its folder, and in a shell that has read the file.
func TestToolsOfDevelopmentModeAreCalledByItsServer(t *testing.T) {
	t.Parallel()
	tickets, err := demo.StartTickets()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tickets.Close() })
	dsn := dbtest.DSN(t)
	srv := serve(t, dsn, "127.0.0.1:0", "PARLEY_EGRESS_ALLOW="+tickets.Pin())
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dsn}}
	sh.must("workspace", "create", "demo")
	sh.must("workspace", "create", "other")
	key := strings.TrimSpace(sh.must("keys", "create", "--name", "dev", "--scope", "all", "-w", "demo"))
	lines := []string{"PARLEY_URL=" + srv.url, "PARLEY_WORKSPACE=demo", "PARLEY_API_KEY=" + key, "PARLEY_DATABASE_URL=" + dsn}
	file := filepath.Join(sh.dir, ".parley", "dev.env")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("export "+strings.Join(lines, "\nexport ")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := shell{t: t, dir: sh.dir}
	folder.must("tools", "add", "tickets", "--mcp", demo.TicketsURL, "--allow", "list")
	for name, sh := range map[string]shell{"the folder": folder, "its shell": {t: t, dir: t.TempDir(), environ: lines}} {
		sh.must("tools", "refresh", "tickets")
		if out := sh.must("tools", "test", "tickets", "list"); !strings.Contains(out, "Coffee machine") {
			t.Errorf("%s: %s", name, out)
		}
		file := filepath.Join(sh.dir, "parley.yaml")
		text := "parley: 1\ntool_servers:\n  again: {kind: mcp, url: " + demo.TicketsURL + "}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		sh.must("apply", "-f", file, "--yes")
		if out := sh.must("tools", "test", "again", "list"); !strings.Contains(out, "Coffee machine") {
			t.Errorf("%s: applied: %s", name, out)
		}
		sh.must("tools", "remove", "again")
		if out, errs, code := sh.run("tools", "list", "-w", "other"); code != 0 || !strings.Contains(errs, "No tool servers.") {
			t.Errorf("%s: another workspace: exit code %d, %s%s", name, code, out, errs)
		}
	}
}
