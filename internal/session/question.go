package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Number is the number of a question among those of its session, which begin with 1.
func (s *Store) Number(ctx context.Context, workspace, id uuid.UUID) (int, error) {
	n, err := s.q.ApprovalNumber(ctx, workspace, id)
	if err != nil {
		return 0, fmt.Errorf("number question: %w", err)
	}
	return int(n), nil
}

// Numbered is the question of a session that has a number; ok is false where there is none.
func (s *Store) Numbered(ctx context.Context, workspace, session uuid.UUID, n int) (a Approval, ok bool, err error) {
	if n < 1 {
		return a, false, nil
	}
	id, err := s.q.ApprovalNumbered(ctx, workspace, session, int32(n)-1)
	return s.asked(ctx, workspace, id, err)
}

// First is the first question of a turn; ok is false where it asked none.
func (s *Store) First(ctx context.Context, workspace, turn uuid.UUID) (a Approval, ok bool, err error) {
	id, err := s.q.ApprovalFirst(ctx, workspace, turn)
	return s.asked(ctx, workspace, id, err)
}

func (s *Store) asked(ctx context.Context, workspace, id uuid.UUID, err error) (Approval, bool, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return Approval{}, false, nil
	}
	if err != nil {
		return Approval{}, false, fmt.Errorf("find question: %w", err)
	}
	a, err := s.Approval(ctx, workspace, id)
	return a, err == nil, err
}

// Ended is a turn that has ended.
type Ended struct {
	Turn  uuid.UUID
	State State
	Ago   time.Duration
	Asked uuid.UUID // its last question; uuid.Nil: it asked none
}

// Ended is the newest turn of a session; ok is false where it has not ended, or there is none.
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
