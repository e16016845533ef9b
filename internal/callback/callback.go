// Package callback owns the reports of turns to addresses that their messages
// named: where they go, what was sent, what came of it, and what it is signed with.
//
// It promises that an event which is reported is delivered at least once, under one
// webhook-id and with the same bytes every time, signed as Standard Webhooks says;
// that every attempt is written down; and that a receiver learns nothing about this
// network and shows nobody what it answers. Reports may arrive in any order. It
// decides neither what is reported nor when a job runs.
package callback

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/vault"
)

// Type says what is reported of a turn.
type Type string

const (
	Completed     Type = "turn.completed"
	Failed        Type = "turn.failed"
	Canceled      Type = "turn.canceled"
	InputRequired Type = "turn.input_required"
)

// AnswerTime is how long a receiver may take, to the last byte of its answer.
const AnswerTime = 15 * time.Second

// Store keeps callbacks and delivers their reports.
type Store struct {
	pool   *pgxpool.Pool
	q      *db.Queries
	keys   *vault.Keyring
	guard  *egress.Guard
	client *egress.Client
	crowd  crowd
}

// NewStore makes a store. Its secrets are sealed by keys, and its requests go where
// guard allows.
func NewStore(pool *pgxpool.Pool, keys *vault.Keyring, guard *egress.Guard) *Store {
	return &Store{pool: pool, q: db.New(pool), keys: keys, guard: guard, client: guard.Client(egress.Limits{Time: AnswerTime})}
}

// New is a callback that a message asks for.
type New struct {
	ID, Workspace, Session, Turn uuid.UUID

	URL      string
	Metadata map[string]string
}

// Register stores the callback of a turn, or fails as Check does.
func (s *Store) Register(ctx context.Context, tx pgx.Tx, n New) error {
	if err := s.Check(n.URL, n.Metadata); err != nil {
		return err
	}
	if n.Metadata == nil {
		n.Metadata = map[string]string{}
	}
	metadata, err := json.Marshal(n.Metadata)
	if err != nil {
		return fmt.Errorf("encode metadata: %w", err)
	}
	err = s.q.WithTx(tx).CallbackInsert(ctx, db.CallbackInsertParams{
		ID: n.ID, WorkspaceID: n.Workspace, SessionID: n.Session, TurnID: n.Turn, URL: n.URL, Metadata: metadata,
	})
	if err != nil {
		return fmt.Errorf("insert callback: %w", err)
	}
	return nil
}

// Report makes a delivery of an event that tx writes; ok is false where the turn has
// no callback. The caller inserts a job for it in the same transaction and names that
// job with Assign.
func (s *Store) Report(ctx context.Context, tx pgx.Tx, turn uuid.UUID, typ Type, seq int64) (delivery uuid.UUID, ok bool, err error) {
	delivery = uuid.Must(uuid.NewV7())
	n, err := s.q.WithTx(tx).DeliveryInsert(ctx, delivery, string(typ), seq, turn)
	if err != nil {
		return uuid.Nil, false, fmt.Errorf("insert delivery: %w", err)
	}
	return delivery, n > 0, nil
}

// Erase removes the callbacks of a session, with what was sent and what came of it.
// What is not delivered yet never is.
func (s *Store) Erase(ctx context.Context, tx pgx.Tx, workspace, session uuid.UUID) error {
	if err := s.q.WithTx(tx).CallbacksErase(ctx, workspace, session); err != nil {
		return fmt.Errorf("erase callbacks: %w", err)
	}
	return nil
}

// Assign gives a delivery to a job. Only that job may deliver it from now on.
func (s *Store) Assign(ctx context.Context, tx pgx.Tx, delivery uuid.UUID, job int64) error {
	if err := s.q.WithTx(tx).DeliveryJob(ctx, delivery, &job); err != nil {
		return fmt.Errorf("note the delivery's job: %w", err)
	}
	return nil
}
