package eventlog

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// AwaitStandbys returns when the synchronous standbys, if there are any, have every change that is
// visible now. The message in the write-ahead log has no content. It makes this transaction wait
// like any other.
func AwaitStandbys(ctx context.Context, db interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}) error {
	if _, err := db.Exec(ctx, `SELECT pg_logical_emit_message(true, 'parley', '')`); err != nil {
		return fmt.Errorf("wait for the standbys: %w", err)
	}
	return nil
}

// CheckStandbys returns a function for the AfterConnect of a pool. A crash of PostgreSQL ends the
// waits of commits for their standbys, and after it their rows are visible. So the first connection
// to a server that has restarted waits until the standbys have these rows: otherwise a client could
// receive an event that a failover takes back.
func CheckStandbys() func(context.Context, *pgx.Conn) error {
	// A crash of one backend restarts the others, but not the postmaster. It resets the statistics.
	const readStart = `SELECT concat_ws(' ', pg_postmaster_start_time(), pg_stat_get_bgwriter_stat_reset_time())`
	var mu sync.Mutex
	var checked string
	return func(ctx context.Context, conn *pgx.Conn) error {
		var start string
		if err := conn.QueryRow(ctx, readStart).Scan(&start); err != nil {
			return fmt.Errorf("read the start of the server: %w", err)
		}
		mu.Lock()
		known := checked == start
		mu.Unlock()
		if known {
			return nil
		}
		if err := AwaitStandbys(ctx, conn); err != nil {
			return err
		}
		mu.Lock()
		checked = start
		mu.Unlock()
		return nil
	}
}
