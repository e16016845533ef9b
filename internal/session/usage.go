package session

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/replan"
)

// UsageBy is what usage is summed by.
type UsageBy string

const (
	ByHour UsageBy = "hour" // and model
	ByDay  UsageBy = "day"  // and model, in UTC
	ByKey  UsageBy = "key"
	ByUser UsageBy = "user"
)

// UsageRow is the usage of turns.
type UsageRow struct {
	At           time.Time // of an hour or a day
	Name         string    // model, id of a key, or user; "": unknown
	Turns        int64
	Completed    int64
	InputTokens  int64
	OutputTokens int64
	CostUSD      *float64 // nil: no turn had a known price
}

// usageGroups are the expressions of UsageRow.At and UsageRow.Name.
var usageGroups = map[UsageBy][2]string{
	ByHour: {"date_trunc('hour', m.created_at, 'UTC')", "coalesce(m.usage->>'model', '')"},
	ByDay:  {"date_trunc('day', m.created_at, 'UTC')", "coalesce(m.usage->>'model', '')"},
	ByKey:  {"'epoch'::timestamptz", "coalesce(t.key_id, '')"},
	ByUser: {"'epoch'::timestamptz", "coalesce(t.end_user, '')"},
}

// Usage sums the turns of a workspace since a time: by hour or day, oldest first, or the limit rows
// with the most tokens. It finds the sessions by the index of their last change.
func (s *Store) Usage(ctx context.Context, workspace uuid.UUID, since time.Time, by UsageBy, limit int) ([]UsageRow, error) {
	group := usageGroups[by]
	order := "at, name"
	if by == ByKey || by == ByUser {
		order = "input_tokens + output_tokens DESC, name"
	}
	rows, err := replan.Fresh{Pool: s.pool}.Query(ctx, `SELECT * FROM (
    SELECT `+group[0]+` AS at, `+group[1]+` AS name, count(*) AS turns, count(*) FILTER (WHERE m.status = 'completed') AS completed,
           coalesce(sum((m.usage->>'input_tokens')::bigint), 0)::bigint AS input_tokens,
           coalesce(sum((m.usage->>'output_tokens')::bigint), 0)::bigint AS output_tokens,
           sum((m.usage->>'cost_usd')::numeric)::float8 AS cost_usd
    FROM sessions s JOIN messages m ON m.session_id = s.id JOIN turns t ON t.id = m.turn_id
    WHERE s.workspace_id = $1 AND s.updated_at >= $2 AND m.role = 'assistant' AND m.status <> 'in_progress' AND m.created_at >= $2
    GROUP BY 1, 2) u ORDER BY `+order+` LIMIT $3`, workspace, since, limit)
	if err != nil {
		return nil, fmt.Errorf("sum the usage: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[UsageRow])
	if err != nil {
		return nil, fmt.Errorf("sum the usage: %w", err)
	}
	return list, nil
}
