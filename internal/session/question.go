package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Ended is a turn that has ended.
type Ended struct {
	Turn  uuid.UUID
	State State
	Ago   time.Duration
	Asked uuid.UUID // its last question; uuid.Nil: none
}

// Ended returns the newest turn of a session; ok is false if it has not ended, or if the session
// has no turn.
func (s *Store) Ended(ctx context.Context, workspace, session uuid.UUID) (e Ended, ok bool, err error) {
	row, err := s.q.TurnEnded(ctx, workspace, session)
	if errors.Is(err, pgx.ErrNoRows) {
		return e, false, nil
	}
	if err != nil {
		return e, false, fmt.Errorf("read the turn that ended: %w", err)
	}
	ago := time.Duration(row.SecondsAgo * float64(time.Second))
	return Ended{Turn: row.ID, State: State(row.State), Ago: ago, Asked: row.Asked}, true, nil
}
