package session

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
)

// ErrBusy means that another transaction holds the lock of the session.
var ErrBusy = errors.New("the session is locked by another transaction")

// TryUpdate is Update for callers that handle many sessions: it does not wait for the lock of a
// session, but returns ErrBusy.
func (s *Store) TryUpdate(ctx context.Context, id uuid.UUID, fn func(*Tx) error) error {
	return s.updateLocked(ctx, locking{
		queue:   func(q *db.Queries) error { return q.SessionTryLock(ctx, id) },
		missing: ErrBusy,
	}, fn)
}
