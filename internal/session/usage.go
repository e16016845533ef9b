package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/replan"
)

// UsageBy is what usage is summed by.
type UsageBy string

const (
	ByHour  UsageBy = "hour" // and model
	ByDay   UsageBy = "day"  // and model, in UTC
	ByAgent UsageBy = "agent"
	ByKey   UsageBy = "key"
	ByUser  UsageBy = "user"
)

// UsageRow is the usage of turns that have ended.
type UsageRow struct {
	At           time.Time // of an hour or a day
	Name         string    // model, agent with its version, id of a key, or user; "": unknown
	Turns        int64
	Completed    int64
	InputTokens  int64
	OutputTokens int64
	CostUSD      *float64 // nil: no turn had a known price
}

// Usage is the usage of a workspace.
type Usage struct {
	Times  []UsageRow // by hour or day and model, oldest first
	Agents []UsageRow // with the most tokens first, as are the others
	Keys   []UsageRow
	Users  []UsageRow
}

// Usage sums the turns of a workspace that have ended since a day in UTC, by the hours or the days
// of unit. Lists other than the times have at most limit rows. Whole days come from usage_days;
// turns of later days are found by the index of their last state.
func (s *Store) Usage(ctx context.Context, workspace uuid.UUID, since time.Time, unit UsageBy, limit int) (u Usage, err error) {
	since = since.UTC().Truncate(24 * time.Hour)
	edge := since
	if unit != ByHour {
		if edge, err = s.firstUnsummed(ctx, since); err != nil {
			return u, err
		}
	}
	rows, err := replan.Fresh{Pool: s.pool}.Query(ctx, usageReport, workspace, since, edge, string(unit), limit)
	if err != nil {
		return u, fmt.Errorf("sum the usage: %w", err)
	}
	type kindRow struct {
		Kind string
		UsageRow
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r kindRow, err error) {
		err = row.Scan(&r.Kind, &r.At, &r.Name, &r.Turns, &r.Completed, &r.InputTokens, &r.OutputTokens, &r.CostUSD)
		return r, err
	})
	if err != nil {
		return u, fmt.Errorf("sum the usage: %w", err)
	}
	of := map[string]*[]UsageRow{"model": &u.Times, "agent": &u.Agents, "key": &u.Keys, "user": &u.Users}
	for _, r := range list {
		*of[r.Kind] = append(*of[r.Kind], r.UsageRow)
	}
	return u, nil
}

// firstUnsummed returns the first day since a time that is not in usage_days.
func (s *Store) firstUnsummed(ctx context.Context, since time.Time) (time.Time, error) {
	next, err := s.q.UsageDayNext(ctx)
	if err != nil {
		return since, fmt.Errorf("find the days that are summed: %w", err)
	}
	if next.Day.Time.After(since) {
		return next.Day.Time, nil
	}
	return since, nil
}

// usageReport has the arguments workspace, first day, first day that is counted from the turns,
// unit and limit.
const usageReport = `SELECT kind, at, name, turns, completed, input_tokens, output_tokens, cost_usd::float8 FROM (
    SELECT u.*, row_number() OVER (PARTITION BY kind ORDER BY input_tokens + output_tokens DESC, turns DESC, name) AS place FROM (
        SELECT kind, CASE kind WHEN 'model' THEN at ELSE 'epoch' END AS at, name, sum(turns)::bigint AS turns,
            sum(completed)::bigint AS completed,
               sum(input_tokens)::bigint AS input_tokens, sum(output_tokens)::bigint AS output_tokens, sum(cost_usd) AS cost_usd
        FROM (
            SELECT kind, day::timestamp AT TIME ZONE 'UTC' AS at, subject AS name, turns, completed, input_tokens, output_tokens, cost_usd
            FROM usage_days WHERE workspace_id = $1 AND kind <> 'tool' AND day >= ($2::timestamptz AT TIME ZONE 'UTC')::date
                AND day < ($3::timestamptz AT TIME ZONE 'UTC')::date
            UNION ALL
            SELECT k.kind, date_trunc($4, t.state_at, 'UTC'), k.subject, count(*), count(*) FILTER (WHERE t.state = 'completed'),
                   coalesce(sum((m.usage ->> 'input_tokens')::bigint), 0), coalesce(sum((m.usage ->> 'output_tokens')::bigint), 0),
                   sum((m.usage ->> 'cost_usd')::numeric)
            FROM turns t JOIN messages m ON m.turn_id = t.id AND m.role = 'assistant'
            CROSS JOIN LATERAL (VALUES ('model', coalesce(m.usage ->> 'model', '')), ('key', coalesce(t.key_id, '')),
                ('user', coalesce(t.end_user, '')),
                ('agent', coalesce(t.agent || ' ' || CASE t.agent_version WHEN 0 THEN 'draft' ELSE 'v' || t.agent_version END,
                    ''))) AS k (kind, subject)
            WHERE t.workspace_id = $1 AND t.state_at >= $3 AND t.state IN ('completed', 'failed', 'canceled')
            GROUP BY 1, 2, 3
        ) r GROUP BY 1, 2, 3
    ) u
) p WHERE kind = 'model' OR place <= $5 ORDER BY kind, at, CASE kind WHEN 'model' THEN 0 ELSE place END, name`

// FirstText is how long turns took until their first text.
type FirstText struct {
	Turns    int // that were measured
	P50, P95 time.Duration
}

// FirstText measures the newest turns of a workspace that have ended since a time, at most n. Turns
// without text, and those whose text is past the replay window, are not counted.
func (s *Store) FirstText(ctx context.Context, workspace uuid.UUID, since time.Time, n int) (f FirstText, err error) {
	var p50, p95 float64
	err = replan.Fresh{Pool: s.pool}.QueryRow(ctx,
		`SELECT count(*), coalesce(percentile_disc(0.5) WITHIN GROUP (ORDER BY x.s), 0),
			coalesce(percentile_disc(0.95) WITHIN GROUP (ORDER BY x.s), 0)
FROM (SELECT extract(epoch FROM e.at - t.created_at)::float8 AS s
      FROM (SELECT o.session_id, o.created_at, o.start_seq, o.end_seq FROM turns o
            WHERE o.workspace_id = $1 AND o.state = 'completed' AND o.state_at >= $2 ORDER BY o.state_at DESC, o.id DESC LIMIT $3) t
      CROSS JOIN LATERAL (SELECT v.at FROM events v
                          WHERE v.session_id = t.session_id AND v.seq > t.start_seq AND v.seq < t.end_seq AND v.delta AND v.kind = 'text'
                              AND v.at >= t.created_at - interval '1 hour'
                          ORDER BY v.seq LIMIT 1) e) x`, workspace, since, n).Scan(&f.Turns, &p50, &p95)
	if err != nil {
		return f, fmt.Errorf("measure the first text: %w", err)
	}
	f.P50, f.P95 = time.Duration(p50*float64(time.Second)), time.Duration(p95*float64(time.Second))
	return f, nil
}

// SumUsage stores the sums of the days that are over and not summed yet. One process at a time
// calls it. Sums of old days are removed, even if a day cannot be summed.
func (s *Store) SumUsage(ctx context.Context) error {
	err := s.sumDays(ctx)
	if dropErr := s.q.UsageDaysDrop(ctx, s.opt.Audit.Seconds()); dropErr != nil {
		err = errors.Join(err, fmt.Errorf("remove old sums: %w", dropErr))
	}
	return err
}

// sumDays stores the sums of the days that are over and not summed yet.
func (s *Store) sumDays(ctx context.Context) error {
	for {
		next, err := s.q.UsageDayNext(ctx)
		if err != nil {
			return fmt.Errorf("find the days that are summed: %w", err)
		}
		if !next.IsOver {
			return nil
		}
		err = replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
			q := s.q.WithTx(tx)
			if err := q.RetentionPatience(ctx, int32(time.Second.Milliseconds())); err != nil {
				return err
			}
			if err := q.UsageLock(ctx); err != nil {
				return err
			}
			if err := q.UsageDaySum(ctx, next.Day); err != nil {
				return err
			}
			return q.UsageDaySummed(ctx, next.Day)
		})
		if err != nil {
			return fmt.Errorf("sum the usage of %s: %w", next.Day.Time.Format(time.DateOnly), err)
		}
	}
}
