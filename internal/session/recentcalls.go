package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/replan"
)

// RecentCall is a tool call that the model requested. It may not have run.
type RecentCall struct {
	Session uuid.UUID
	At      time.Time
	Input   json.RawMessage
}

// Limits of RecentCalls: the newest sessions that it reads, and the newest calls that it returns.
const (
	callSessions = 5000
	recentCalls  = 5000
)

// RecentCalls returns the calls of a tool in a workspace since a time, newest first. all is false if
// there may be more.
func (s *Store) RecentCalls(ctx context.Context, workspace uuid.UUID, tool string, since time.Time) (calls []RecentCall, all bool,
	err error) {
	rows, err := replan.Fresh{Pool: s.pool}.Query(ctx, `WITH recent AS (
    SELECT id FROM sessions WHERE workspace_id = $1 AND updated_at >= $2 ORDER BY updated_at DESC, id DESC LIMIT $4
)
SELECT e.session_id, e.at, c->'input'
FROM recent JOIN events e ON e.session_id = recent.id CROSS JOIN json_array_elements(e.data->'calls') c
WHERE NOT e.delta AND e.at >= $2 AND e.kind = 'reply' AND c->>'tool' = $3
ORDER BY e.at DESC LIMIT $5`, workspace, since, tool, callSessions, recentCalls)
	if err != nil {
		return nil, false, fmt.Errorf("read the calls of a tool: %w", err)
	}
	calls, err = pgx.CollectRows(rows, pgx.RowToStructByPos[RecentCall])
	if err != nil {
		return nil, false, fmt.Errorf("read the calls of a tool: %w", err)
	}
	if len(calls) == recentCalls {
		return calls, false, nil
	}
	var sessions int
	err = s.pool.QueryRow(ctx, `SELECT count(*) FROM (SELECT FROM sessions WHERE workspace_id = $1 AND updated_at >= $2 LIMIT $3) s`,
		workspace, since, callSessions+1).Scan(&sessions)
	if err != nil {
		return nil, false, fmt.Errorf("count sessions: %w", err)
	}
	return calls, sessions <= callSessions, nil
}
