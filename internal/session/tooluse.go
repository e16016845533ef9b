package session

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/replan"
)

// ToolUse is the use of a tool by the turns of a workspace that have ended.
type ToolUse struct {
	Tool   string // as the model wrote it
	Calls  int64
	Failed int64
	Median *float64 // seconds of a call, in the newest timedSessions sessions; nil: none has a result
}

// timedSessions limits the sessions whose events ToolUses reads.
const timedSessions = 1000

// ToolUses sums the calls of a workspace since a day in UTC by their tool, by name. Whole days come
// from usage_days, later turns are found by the index of their last state, and the times of calls in
// the log.
func (s *Store) ToolUses(ctx context.Context, workspace uuid.UUID, since time.Time) ([]ToolUse, error) {
	since = since.UTC().Truncate(24 * time.Hour)
	edge, err := s.firstUnsummed(ctx, since)
	if err != nil {
		return nil, err
	}
	rows, err := replan.Fresh{Pool: s.pool}.Query(ctx, toolReport, workspace, since, edge, timedSessions)
	if err != nil {
		return nil, fmt.Errorf("sum the calls of tools: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ToolUse])
	if err != nil {
		return nil, fmt.Errorf("sum the calls of tools: %w", err)
	}
	return list, nil
}

// toolReport has the arguments workspace, first day, first day that is counted from the turns, and
// number of sessions whose calls are timed.
const toolReport = `WITH counted AS (
    SELECT tool, sum(calls)::bigint AS calls, sum(failed)::bigint AS failed FROM (
        SELECT subject AS tool, turns AS calls, turns - completed AS failed
        FROM usage_days WHERE workspace_id = $1 AND kind = 'tool' AND day >= ($2::timestamptz AT TIME ZONE 'UTC')::date
            AND day < ($3::timestamptz AT TIME ZONE 'UTC')::date
        UNION ALL
        SELECT coalesce(left(c ->> 'tool', 100), ''), count(*), count(*) FILTER (WHERE c ->> 'ok' = 'false')
        FROM turns t JOIN messages m ON m.turn_id = t.id AND m.role = 'assistant' CROSS JOIN LATERAL json_array_elements(m.tool_calls) c
        WHERE t.workspace_id = $1 AND t.state_at >= $3 AND t.state IN ('completed', 'failed', 'canceled')
        GROUP BY 1
    ) r GROUP BY tool
), recent AS (
    SELECT id FROM sessions WHERE workspace_id = $1 AND updated_at >= $2 ORDER BY updated_at DESC, id DESC LIMIT $4
), call AS (
    SELECT min(e.data ->> 'tool') AS tool, extract(epoch FROM max(e.at) - min(e.at)) AS seconds
    FROM recent JOIN events e ON e.session_id = recent.id
    WHERE NOT e.delta AND e.at >= $2 AND e.kind IN ('tool_use', 'tool_result') AND e.data ->> 'tool_use_id' IS NOT NULL
    GROUP BY e.session_id, e.turn_id, e.data ->> 'tool_use_id' HAVING count(*) = 2
), timed AS (
    SELECT tool, percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds)::float8 AS median FROM call GROUP BY tool
)
SELECT counted.tool, calls, failed, median FROM counted LEFT JOIN timed ON left(timed.tool, 100) = counted.tool
    ORDER BY counted.tool COLLATE "C"`
