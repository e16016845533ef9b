// Package callback owns the callbacks of turns: their URLs, deliveries, attempts and signing
// secrets.
//
// It promises that a reported event is delivered at least once, under one webhook-id and with the
// same bytes every time, signed as Standard Webhooks defines it; that every attempt is recorded;
// and that a receiver learns nothing about this network and no caller sees its response. Reports
// may arrive in any order. It decides neither which events are reported nor when a job runs.
package callback

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/fair"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/store/vault"
)

// Type is the kind of a report.
type Type string

const (
	Completed     Type = "turn.completed"
	Failed        Type = "turn.failed"
	Canceled      Type = "turn.canceled"
	InputRequired Type = "turn.input_required"
)

const (
	// AnswerTime is the time limit for a receiver's response, up to its last byte.
	AnswerTime = 15 * time.Second
	// Places is how many attempts this process makes at once; workspaces share them.
	Places = 40
)

// Store stores callbacks and delivers their reports.
type Store struct {
	pool   *pgxpool.Pool
	q      *db.Queries
	lists  *db.Queries // each query is planned for its filters
	keys   *vault.Keyring
	guard  *egress.Guard
	client *egress.Client
	places *fair.Places
}

// NewStore returns a store. keys seal its secrets, and guard limits its requests.
func NewStore(pool *pgxpool.Pool, keys *vault.Keyring, guard *egress.Guard) *Store {
	return &Store{pool: pool, q: db.New(replan.Pool{Pool: pool}), lists: db.New(replan.Fresh{Pool: pool}), keys: keys, guard: guard,
		client: guard.Client(egress.Limits{Time: AnswerTime}), places: fair.New(Places)}
}

// Protocol determines the body of a callback.
type Protocol string

const (
	Parley Protocol = "parley"
	A2A03  Protocol = "a2a/0.3"
	A2A10  Protocol = "a2a/1.0"
)

// New is a callback to be registered, from a message or a later request.
type New struct {
	ID, Workspace, Session, Turn uuid.UUID

	URL      string
	Metadata map[string]string
	Name     string   // "": the callback of the message
	Protocol Protocol // "": Parley
	Auth     Auth
}

// MaxNamed is the maximum number of named callbacks of a turn.
const MaxNamed = 10

// Register stores the callback of a turn, or fails as Check does. If the turn has one of the same
// name, it changes that one.
func (s *Store) Register(ctx context.Context, tx pgx.Tx, n New) error {
	return s.putCallback(ctx, tx, n)
}

// Put is Register in a transaction of its own.
func (s *Store) Put(ctx context.Context, n New) error { return s.putCallback(ctx, s.pool, n) }

func (s *Store) putCallback(ctx context.Context, on db.DBTX, n New) error {
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
	auth, err := s.sealAuth(n)
	if err != nil {
		return err
	}
	address, err := s.sealAddress(n.Workspace, n.Turn, n.Name, n.URL)
	if err != nil {
		return err
	}
	rows, err := db.New(on).CallbackPut(ctx, db.CallbackPutParams{
		ID: n.ID, WorkspaceID: n.Workspace, SessionID: n.Session, TurnID: n.Turn, Address: address, Metadata: metadata,
		Name: n.Name, Protocol: string(cmp.Or(n.Protocol, Parley)), Auth: auth, Most: MaxNamed,
	})
	if err != nil {
		return fmt.Errorf("insert callback: %w", err)
	}
	if rows == 0 {
		return fault.Invalid(fault.Violation{Param: "/callback", Rule: "max_items",
			Message: fmt.Sprintf("A turn is reported to at most %d receivers.", MaxNamed), Expected: MaxNamed})
	}
	return nil
}

// Report creates the deliveries of an event that tx writes: one for each callback of the turn. The
// caller inserts a job for each in the same transaction and names that job with Assign.
func (s *Store) Report(ctx context.Context, tx pgx.Tx, turn uuid.UUID, typ Type, seq int64) (deliveries []uuid.UUID, err error) {
	ids := make([]uuid.UUID, MaxNamed+1)
	for i := range ids {
		ids[i] = uuid.Must(uuid.NewV7())
	}
	deliveries, err = s.q.WithTx(tx).DeliveriesInsert(ctx, ids, string(typ), seq, turn)
	if err != nil {
		return nil, fmt.Errorf("insert deliveries: %w", err)
	}
	return deliveries, nil
}

// Erase removes the callbacks of a session, with their reports and outcomes. Pending reports are
// never delivered.
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
