package apikey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
)

// Change lists what is set of a key. A nil field stays unchanged.
type Change struct {
	Name      *string
	ExpiresAt *time.Time
	Forever   bool // the key never expires
}

// Update changes the name and the expiry of a key, or fails with ErrNotFound. A key that is revoked
// or expired stays so.
func (s *Store) Update(ctx context.Context, workspace uuid.UUID, id string, c Change) (Key, error) {
	if c.Name != nil && !isName(*c.Name) {
		return Key{}, fault.Invalid(nameViolation)
	}
	row, err := s.q.APIKeyUpdate(ctx, db.APIKeyUpdateParams{WorkspaceID: workspace, ID: id, Name: c.Name, ExpiresAt: c.ExpiresAt,
		Forever: c.Forever})
	s.cache.forget(id)
	if errors.Is(err, pgx.ErrNoRows) {
		return Key{}, ErrNotFound
	}
	if err != nil {
		return Key{}, fmt.Errorf("update key: %w", err)
	}
	return keyOf(row), nil
}
