//go:build unix

package dbtest_test

import (
	"testing"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/dbtest/faultproxy"
)

// TestProxyLeadsToTheDatabase checks that a DSN through a proxy names the same database, and that a
// prepared statement is recognized each time it is executed.
func TestProxyLeadsToTheDatabase(t *testing.T) {
	t.Parallel()
	direct := dbtest.DSN(t)
	proxy, dsn := dbtest.Proxy(t, direct)
	pool := dbtest.Pool(t, dsn)
	var name, want string
	if err := dbtest.Pool(t, direct).QueryRow(t.Context(), `SELECT current_database()`).Scan(&want); err != nil {
		t.Fatal(err)
	}
	executions := 0
	match := faultproxy.Executes("current_database() AS marked")
	proxy.OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
		if match(c) {
			executions++
		}
		return faultproxy.Forward
	})
	for range 3 {
		err := pool.QueryRow(t.Context(), `SELECT current_database() AS marked WHERE $1 > 0`, 1).Scan(&name)
		if err != nil || name != want {
			t.Fatalf("database %q, %v; want %q", name, err, want)
		}
		if _, err := pool.Exec(t.Context(), `SELECT $1::int`, 1); err != nil {
			t.Fatal(err)
		}
	}
	if proxy.OnChunk(nil); executions != 3 {
		t.Errorf("recognised %d executions, want 3", executions)
	}
	if proxy.Cut() == 0 {
		t.Error("no connection went through the proxy")
	}
}
