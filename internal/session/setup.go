package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const (
	maxKnownSetups = 10_000
	setupKnown     = 12 * time.Hour // less than a day: used_at is exact to a day
)

// knownSetups are the setups that this process has stored, so that a turn usually needs no statement.
type knownSetups struct {
	mu sync.Mutex
	at map[setupKey]time.Time
}

type setupKey struct {
	workspace uuid.UUID
	digest    string
}

func (k *knownSetups) has(key setupKey) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Since(k.at[key]) < setupKnown
}

func (k *knownSetups) add(key setupKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.at == nil || len(k.at) >= maxKnownSetups {
		k.at = make(map[setupKey]time.Time)
	}
	k.at[key] = time.Now()
}

// KeepSetup stores what the requests of a turn have from the configuration under its digest. encode
// returns its JSON, if it is needed.
func (s *Store) KeepSetup(ctx context.Context, workspace uuid.UUID, digest string, encode func() ([]byte, error)) error {
	key := setupKey{workspace, digest}
	if s.setups.has(key) {
		return nil
	}
	content, err := encode()
	if err != nil {
		return fmt.Errorf("encode the setup of a turn: %w", err)
	}
	if err := s.q.SetupKeep(ctx, workspace, digest, content); err != nil {
		return fmt.Errorf("store the setup of a turn: %w", err)
	}
	s.setups.add(key)
	return nil
}

// Setup returns the JSON of a setup; nil: it is not stored.
func (s *Store) Setup(ctx context.Context, workspace uuid.UUID, digest string) ([]byte, error) {
	content, err := s.q.SetupGet(ctx, workspace, digest)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the setup of a turn: %w", err)
	}
	return content, nil
}

// NthTurn returns the n-th turn of a session, from 1, or its newest if n is 0; ok is false if the
// session has fewer.
func (s *Store) NthTurn(ctx context.Context, workspace, session uuid.UUID, n int) (t Turn, ok bool, err error) {
	row, err := s.q.TurnNth(ctx, session, workspace, int32(n))
	if errors.Is(err, pgx.ErrNoRows) {
		return Turn{}, false, nil
	}
	if err != nil {
		return Turn{}, false, fmt.Errorf("read a turn: %w", err)
	}
	return turnOf(row), true, nil
}
