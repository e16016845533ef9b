package app

import (
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/dbtest/faultproxy"
	"github.com/parley-server/parley/internal/testing/slow"
)

// TestDeadConnectionFreesItsSlot makes the only connection of a pool half-open. The statement on it
// has no deadline of its own; it ends all the same, and the next one has a new connection at once.
func TestDeadConnectionFreesItsSlot(t *testing.T) {
	t.Parallel()
	slow.Test(t, "breaks connections")
	proxy, dsn := dbtest.Proxy(t, dbtest.Empty(t))
	pool, err := openPool(t.Context(), Secret(dsn+"&pool_max_conns=1&statement_timeout=500"), "test", 8)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var first, second int
	if err := pool.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&first); err != nil {
		t.Fatal(err)
	}
	proxy.OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
		if c.Conn == 1 {
			return faultproxy.FreezeConn
		}
		return faultproxy.Forward
	})
	began := time.Now()
	if _, err := pool.Exec(t.Context(), "SELECT 1"); err == nil {
		t.Error("a statement succeeded on a dead connection")
	}
	failed := time.Since(began)
	if err := pool.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&second); err != nil || first == second {
		t.Errorf("after the dead connection: %v, backends %d and %d", err, first, second)
	}
	took := time.Since(began)
	t.Logf("the statement failed after %s, the next one was answered after %s", failed, took)
	if took > 12*time.Second {
		t.Errorf("the place in the pool was free after %s", took)
	}
}

// TestSettingsOfAConnection checks that every connection has the settings, and that the address can
// choose others.
func TestSettingsOfAConnection(t *testing.T) {
	t.Parallel()
	for chosen, want := range map[string]string{"": "5s", "&statement_timeout=9000": "9s"} {
		_, dsn := dbtest.Proxy(t, dbtest.Empty(t))
		pool, err := openPool(t.Context(), Secret(dsn+chosen), "test", 8)
		if err != nil {
			t.Fatal(err)
		}
		var statement, lock, idle, zone, name string
		err = pool.QueryRow(t.Context(), `SELECT current_setting('statement_timeout'), current_setting('lock_timeout'),
			current_setting('idle_in_transaction_session_timeout'), current_setting('timezone'), current_setting('application_name')`).
			Scan(&statement, &lock, &idle, &zone, &name)
		pool.Close()
		if err != nil || statement != want || lock != "2s" || idle != "5s" || zone != "UTC" || name != "test" {
			t.Errorf("%q: %v, %s %s %s %s %s", chosen, err, statement, lock, idle, zone, name)
		}
	}
}

func TestClientWaitsLongerThanPostgreSQL(t *testing.T) {
	t.Parallel()
	for chosen, want := range map[string]time.Duration{
		"": 6 * time.Second, "500": 1500 * time.Millisecond, "2s": 3 * time.Second, "0": 0, "250 ms": 1250 * time.Millisecond, "1 d": 0,
	} {
		if got := clientLimit(chosen); got != want {
			t.Errorf("statement_timeout %q: %s, want %s", chosen, got, want)
		}
	}
}
