package session

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/replan"
)

// SkillUse is the use of a version of a skill.
type SkillUse struct {
	Skill   string // its name, as it was when the turn began
	Version int32
	Turns   int64
	Failed  int64
	Last    time.Time // begin of the newest turn
}

// SkillUses sums the turns of a workspace that began since a time by the version of their skill. It
// finds the sessions by the index of their last change.
func (s *Store) SkillUses(ctx context.Context, workspace uuid.UUID, since time.Time) ([]SkillUse, error) {
	rows, err := replan.Fresh{Pool: s.pool}.Query(ctx,
		`SELECT m.skill, t.skill_version, count(*), count(*) FILTER (WHERE t.state = 'failed'), max(t.created_at)
FROM sessions s JOIN turns t ON t.session_id = s.id JOIN messages m ON m.turn_id = t.id AND m.role = 'user'
WHERE s.workspace_id = $1 AND s.updated_at >= $2 AND t.created_at >= $2 AND t.skill_version IS NOT NULL AND m.skill IS NOT NULL
GROUP BY 1, 2 ORDER BY 1, 2`, workspace, since)
	if err != nil {
		return nil, fmt.Errorf("sum the turns of skills: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[SkillUse])
	if err != nil {
		return nil, fmt.Errorf("sum the turns of skills: %w", err)
	}
	return list, nil
}
