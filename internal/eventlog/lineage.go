package eventlog

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/pgerr"
)

// The lineage of a database is its cluster and its timeline. After an asynchronous failover or a
// restore the lineage is another one: rows that clients have seen are missing, and the sequence of
// ids has moved back. CheckLineage moves the sequence ahead of every id ever issued. So no id is
// issued twice, and the cursor of a lost row does not match any row of its session.
const (
	// The name of the current WAL file begins with the timeline; pg_control_checkpoint shows the old
	// one for minutes after a promotion. On a standby this fails, and with it the connection, which
	// would outlive a promotion unchecked.
	readLineage = `
SELECT c.system_identifier, w.timeline, coalesce(l.system_identifier = c.system_identifier AND l.timeline = w.timeline, false)
FROM pg_control_system() c
CROSS JOIN (SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline) w
LEFT JOIN lineage l ON true`
	lockLineage = `SELECT pg_advisory_xact_lock(20562, 1)`
	noteLineage = `INSERT INTO lineage (system_identifier, timeline) VALUES ($1, $2) ON CONFLICT DO NOTHING`
	moveLineage = `
UPDATE lineage SET system_identifier = $1, timeline = $2, fence = fence + 1000000000, noted_at = now()
WHERE system_identifier <> $1 OR timeline <> $2`
	// Two restores of one backup begin at the same id. The clock distinguishes them: its
	// microseconds exceed all ids after an earlier move, unless a million events a second were
	// written.
	moveSequence = `
SELECT setval(s, greatest(nextval(s) + 1000000000, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint))
FROM CAST(pg_get_serial_sequence('events', 'seq') AS regclass) s`
)

// CheckLineage returns a function for the AfterConnect of a pool. It compares the lineage of the
// database with the stored one before anything is written over a new connection.
func CheckLineage(log *slog.Logger) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, conn *pgx.Conn) error {
		var identifier int64
		var timeline string
		var known bool
		err := conn.QueryRow(ctx, readLineage).Scan(&identifier, &timeline, &known)
		switch {
		case pgerr.IsUndefinedTable(err), pgerr.IsForbidden(err): // before the first migration; not allowed by a hosting service
			return nil
		case err != nil:
			return fmt.Errorf("read the timeline: %w", err)
		case known:
			return nil
		}
		moved, err := noteAndMove(ctx, conn, identifier, timeline)
		if moved {
			log.WarnContext(ctx, "the database was restored or failed over: event ids continue far ahead",
				"system_identifier", identifier, "timeline", timeline)
		}
		return err
	}
}

// noteAndMove stores the lineage and, if another one was stored, moves the ids ahead. If many
// connections detect this at once, one of them does so.
func noteAndMove(ctx context.Context, conn *pgx.Conn, identifier int64, timeline string) (moved bool, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockLineage); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, noteLineage, identifier, timeline); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, moveLineage, identifier, timeline)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		moved = true
		_, err = tx.Exec(ctx, moveSequence) // is not rolled back; a repeat moves further
		return err
	})
	if err != nil {
		return false, fmt.Errorf("note the timeline: %w", err)
	}
	return moved, nil
}
