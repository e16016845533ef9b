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

// ToolUses sums the calls of a workspace since a time by their tool, by name. It finds the sessions
// by the index of their last change, and the times of calls in the log.
func (s *Store) ToolUses(ctx context.Context, workspace uuid.UUID, since time.Time) ([]ToolUse, error) {
	rows, err := replan.Fresh{Pool: s.pool}.Query(ctx, `WITH counted AS (
    SELECT c->>'tool' AS tool, count(*) AS calls, count(*) FILTER (WHERE c->>'ok' = 'false') AS failed
    FROM sessions s JOIN messages m ON m.session_id = s.id CROSS JOIN json_array_elements(m.tool_calls) c
    WHERE s.workspace_id = $1 AND s.updated_at >= $2 AND m.role = 'assistant' AND m.status <> 'in_progress' AND m.created_at >= $2
    GROUP BY 1
), recent AS (
    SELECT id FROM sessions WHERE workspace_id = $1 AND updated_at >= $2 ORDER BY updated_at DESC, id DESC LIMIT $3
), call AS (
    SELECT min(e.data->>'tool') AS tool, extract(epoch FROM max(e.at) - min(e.at)) AS seconds
    FROM recent JOIN events e ON e.session_id = recent.id
    WHERE NOT e.delta AND e.at >= $2 AND e.kind IN ('tool_use', 'tool_result') AND e.data->>'tool_use_id' IS NOT NULL
    GROUP BY e.session_id, e.turn_id, e.data->>'tool_use_id' HAVING count(*) = 2
)
SELECT tool, calls, failed,
       (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY call.seconds) FROM call WHERE call.tool = counted.tool)::float8
FROM counted ORDER BY tool COLLATE "C"`, workspace, since, timedSessions)
	if err != nil {
		return nil, fmt.Errorf("sum the calls of tools: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ToolUse])
	if err != nil {
		return nil, fmt.Errorf("sum the calls of tools: %w", err)
	}
	return list, nil
}
