package cli_test

import (
	"net"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestFailedStartsHaveTheirExitCodes checks that 5 is the code of failures that a retry can end, and
// no other's.
func TestFailedStartsHaveTheirExitCodes(t *testing.T) {
	t.Parallel()
	slow.Test(t, "waits for a database")
	proxy, refused := dbtest.Proxy(t, dbtest.Empty(t))
	proxy.Refuse(true)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	dsn, empty := dbtest.DSN(t), dbtest.Empty(t)
	for _, c := range []struct {
		name string
		dsn  string
		more string
		args []string
		code int
		says string
	}{
		{"no such database", strings.Replace(dsn, "/parley_", "/absent_", 1), "", []string{"migrate", "status"}, 1,
			"PostgreSQL refused the connection"},
		{"no migrations", empty, "PARLEY_MIGRATE=check", []string{"serve"}, 1, "The database lacks"},
		{"top without migrations", empty, "", []string{"top", "--once"}, 1,
			"a table of this release: relation \"approvals\" does not exist. Run parley migrate up.\n"},
		{"audit verify without migrations", empty, "", []string{"audit", "verify"}, 1, "Run parley migrate up.\n"},
		{"port in use", dsn, "PARLEY_LISTEN=" + taken.Addr().String(), []string{"serve"}, 1, "cannot be listened on"},
		{"unreachable", refused, "", []string{"migrate", "status"}, 5, "PostgreSQL cannot be reached"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + c.dsn, "PARLEY_DURABILITY=off",
				"PARLEY_VAULT_KEY=" + vaultKey, c.more}}
			k := sh.start(c.args...)
			if code := wait.Receive(t, "the end", k.code); code != c.code || !strings.Contains(k.errs.String(), c.says) {
				t.Errorf("exit code %d, want %d with %q: %s", code, c.code, c.says, k.errs)
			}
		})
	}
}
