package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
)

// ErrBusy means that another transaction holds the lock of the session.
var ErrBusy = errors.New("the session is locked by another transaction")

// TryUpdate is Update for callers that look after many sessions: it does not wait for the lock of
// one, but returns ErrBusy.
func (s *Store) TryUpdate(ctx context.Context, id uuid.UUID, fn func(*Tx) error) error {
	return s.update(ctx, func(q *db.Queries) (db.Session, error) {
		row, err := q.SessionTryLock(ctx, id)
		if errors.Is(err, pgx.ErrNoRows) {
			return row, ErrBusy
		}
		if err != nil {
			return row, fmt.Errorf("lock session: %w", err)
		}
		return row, nil
	}, fn)
}
