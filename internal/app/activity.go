package app

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/server/admin"
)

// slowTurns is the number of running turns that are described.
const slowTurns = 10

// openJobs are the jobs that have not ended. A job of a process that is gone is lost, which River only
// finds out after an hour. It does not count if another process has its turn, or has ended it.
const openJobs = `(SELECT queue, CASE WHEN lost THEN 'lost' ELSE state::text END AS state, scheduled_at, created_at
FROM (SELECT *, attempted_by[cardinality(attempted_by)] AS node, state = 'running'
    AND attempted_by[cardinality(attempted_by)] <> ALL (SELECT nodes_alive()::text) AS lost
      FROM river_job WHERE state IN ('available', 'running', 'retryable', 'discarded')) r
WHERE NOT (lost AND kind = 'turn' AND NOT EXISTS (SELECT FROM turns t
    WHERE t.id = (r.args->>'turn_id')::uuid AND t.state = 'running' AND t.node::text = r.node))) j`

// describeActivity returns the work of all processes on a database. It is called each second: each
// query reads rows of a partial index or of a small table, or the newest turns.
func describeActivity(pool *pgxpool.Pool) func(context.Context) (admin.Activity, error) {
	return func(ctx context.Context) (a admin.Activity, err error) {
		err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			if err := scanTotals(ctx, tx, &a); err != nil {
				return fmt.Errorf("count turns: %w", err)
			}
			if a.Ended, err = collectRows[admin.EndedTurns](ctx, tx, `SELECT state, coalesce(error, ''), count(*) FROM turns
WHERE created_at > now() - interval '5 minutes' AND state IN ('completed', 'failed', 'canceled')
GROUP BY 1, 2 ORDER BY 3 DESC`); err != nil {
				return fmt.Errorf("count ended turns: %w", err)
			}
			if a.Workers, err = collectRows[admin.Worker](ctx, tx,
				`SELECT node, count(*) FROM turns WHERE state = 'running' AND node IN (SELECT nodes_alive()) GROUP BY 1 ORDER BY 1`); err != nil {
				return fmt.Errorf("list workers: %w", err)
			}
			if a.Slow, err = collectRows[admin.RunningTurn](ctx, tx,
				`SELECT t.id, t.session_id, w.slug, coalesce(t.node, 0), greatest(extract(epoch FROM now() - t.started_at), 0)::float8
FROM turns t JOIN workspaces w ON w.id = t.workspace_id WHERE t.state = 'running' AND t.started_at IS NOT NULL
ORDER BY t.started_at LIMIT $1`, slowTurns); err != nil {
				return fmt.Errorf("list running turns: %w", err)
			}
			if a.Queues, err = collectRows[admin.Queue](ctx, tx, queuesQuery+openJobs+` GROUP BY queue, state ORDER BY queue, state`); err != nil {
				return fmt.Errorf("count jobs: %w", err)
			}
			return nil
		})
		return a, err
	}
}

// scanTotals reads the counts of which there is one each.
func scanTotals(ctx context.Context, tx pgx.Tx, a *admin.Activity) error {
	return tx.QueryRow(ctx, `SELECT now(), (SELECT count(*) FROM nodes_alive()),
       (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'parley listener' AND datname = current_database()),
       (SELECT coalesce(sum(h.value::bigint), 0) FROM open_streams o, jsonb_each_text(o.held) h WHERE o.expires_at > now()),
       p.pending, p.oldest, t.*
FROM (SELECT count(*) AS pending, greatest(extract(epoch FROM now() - min(created_at)), 0)::float8 AS oldest
        FROM approvals WHERE status = 'pending' AND expires_at > now()) p,
     (SELECT count(*) FILTER (WHERE state = 'lined_up'), count(*) FILTER (WHERE state = 'queued'),
         count(*) FILTER (WHERE state = 'running'), count(*) FILTER (WHERE state = 'waiting'),
             greatest(extract(epoch FROM now() - min(created_at) FILTER (WHERE state = 'queued')), 0)::float8
      FROM turns WHERE state IN ('lined_up', 'queued', 'running', 'waiting')) t`).
		Scan(&a.At, &a.Replicas, &a.Listeners, &a.Streams, &a.Approvals.Pending, &a.Approvals.Oldest,
			&a.Turns.LinedUp, &a.Turns.Queued, &a.Turns.Running, &a.Turns.Waiting, &a.Turns.OldestQueued)
}

func collectRows[T any](ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[T])
}
