package eventlog_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// openChecked opens a pool that checks new connections.
func openChecked(t *testing.T, dsn string, check func(context.Context, *pgx.Conn) error) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.AfterConnect = check
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// nextID draws an event id over a new pool, as a server does.
func nextID(t *testing.T, dsn string) (id int64) {
	t.Helper()
	pool := openChecked(t, dsn, eventlog.CheckLineage(slog.New(slog.DiscardHandler)))
	defer pool.Close()
	if err := pool.QueryRow(t.Context(), `SELECT nextval(pg_get_serial_sequence('events', 'seq'))`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// TestIDsJumpOnAnotherLineage: the ids of a database that was dumped and restored, or promoted,
// exceed all ids that the lost database can have issued; the ids of a restarted database continue.
func TestIDsJumpOnAnotherLineage(t *testing.T) {
	t.Parallel()
	dsn := dbtest.DSN(t)
	first := nextID(t, dsn)
	if second := nextID(t, dsn); second != first+1 {
		t.Errorf("the same database continued with %d after %d", second, first)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	highest := first + 1
	for name, lost := range map[string]string{
		"another cluster":  `UPDATE lineage SET system_identifier = system_identifier - 1`,
		"another timeline": `UPDATE lineage SET timeline = '0000FFFF'`,
	} {
		if _, err := conn.Exec(t.Context(), lost); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		found := make(map[int64]bool)
		for range 8 {
			all.Go(func() {
				id := nextID(t, dsn)
				mu.Lock()
				found[id] = true
				mu.Unlock()
			})
		}
		wait.Until(t, "all goroutines", all.Wait)
		least := int64(1) << 62
		most := int64(0)
		for id := range found {
			least, most = min(least, id), max(most, id)
		}
		if len(found) != 8 || least < highest+1_000_000_000 || most-least > 100 {
			t.Errorf("%s: ids %v after %d; want one jump of 10^9", name, found, highest)
		}
		highest = most
	}
	if highest > 1<<53 {
		t.Errorf("id %d is not exact in JavaScript", highest)
	}
	var fence int64
	if err := conn.QueryRow(t.Context(), `SELECT fence FROM lineage`).Scan(&fence); err != nil || fence != 2_000_000_000 {
		t.Errorf("the fence is at %d: %v", fence, err)
	}
}
