package eventlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-server/parley/internal/pgerr"
)

// Querier is a pool or a connection.
type Querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// AwaitStandbys returns when the synchronous standbys, if there are any, have every change that is
// visible now. The message in the write-ahead log has no content. It makes this transaction wait
// like any other.
func AwaitStandbys(ctx context.Context, db Querier) error {
	const emit = `SELECT pg_logical_emit_message(true, 'parley', '') WHERE current_setting('synchronous_standby_names') <> ''`
	if _, err := db.Exec(ctx, emit); err != nil {
		return fmt.Errorf("wait for the standbys: %w", err)
	}
	return nil
}

// IsCommitWaiting reports whether a commit of this role waits for the synchronous standbys in a
// statement that began more than a second ago.
func IsCommitWaiting(ctx context.Context, db Querier) (waits bool, err error) {
	const look = `SELECT EXISTS (SELECT FROM pg_stat_activity
		WHERE usename = current_user AND wait_event = 'SyncRep' AND clock_timestamp() - query_start > '1 second')`
	if err := db.QueryRow(ctx, look).Scan(&waits); err != nil {
		return false, fmt.Errorf("look for commits that wait: %w", err)
	}
	return waits, nil
}

// standbyTime limits the wait of a new connection. It ends before those who need the connection give
// up, so that they learn the reason.
const standbyTime = 2 * time.Second

// CheckStandbys returns a function for the AfterConnect of a pool. A crash of PostgreSQL ends the
// waits of commits for their standbys, and after it their rows are visible. So the first connection
// to a server that has restarted waits until the standbys have these rows: otherwise a client could
// receive an event that a failover takes back.
func CheckStandbys(log *slog.Logger) func(context.Context, *pgx.Conn) error {
	// A crash of one backend restarts the others, but not the postmaster. It resets the statistics.
	const readStart = `SELECT concat_ws(' ', pg_postmaster_start_time(), pg_stat_get_bgwriter_stat_reset_time()), ` +
		`current_setting('synchronous_standby_names')`
	var mu sync.Mutex
	var checked string
	waits := false
	note := func(ctx context.Context, start string, err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			checked = start
			if waits {
				log.InfoContext(ctx, "the synchronous standbys have everything: connections are used")
			}
		case !waits && errors.Is(err, pgerr.ErrNoStandby):
			log.ErrorContext(ctx,
				"PostgreSQL has restarted, and its synchronous standbys lack changes: no connection is used until they have them", "err", err)
		}
		waits = errors.Is(err, pgerr.ErrNoStandby)
	}
	return func(ctx context.Context, conn *pgx.Conn) error {
		var start, names string
		if err := conn.QueryRow(ctx, readStart).Scan(&start, &names); err != nil {
			return fmt.Errorf("read the start of the server: %w", err)
		}
		mu.Lock()
		known := checked == start
		mu.Unlock()
		if known {
			return nil
		}
		limited, cancel := context.WithTimeout(ctx, standbyTime)
		defer cancel()
		err := AwaitStandbys(limited, conn)
		if pgconn.Timeout(err) && names != "" {
			err = fmt.Errorf("%w: %w", pgerr.ErrNoStandby, err)
		}
		note(ctx, start, err)
		return err
	}
}
