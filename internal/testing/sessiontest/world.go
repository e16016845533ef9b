// Package sessiontest is one database with a workspace, and replicas that work on it, for the tests
// of sessions and of their log.
package sessiontest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// World is one database with a workspace in it.
type World struct {
	DSN       string
	Pool      *pgxpool.Pool
	Workspace workspace.Workspace
}

// New creates a world for a test.
func New(t testing.TB) *World {
	t.Helper()
	return NewOn(t, dbtest.DSN(t))
}

// NewOn creates a world in a new database that is not the shared server's.
func NewOn(t testing.TB, dsn string) *World {
	t.Helper()
	w := &World{DSN: dsn}
	w.Pool = dbtest.Pool(t, w.DSN)
	ws, err := workspace.New(w.Pool).Create(t.Context(), "w", "", "")
	if err != nil {
		t.Fatal(err)
	}
	w.Workspace = ws
	return w
}

// Replica is the sessions and the log of one process.
type Replica struct {
	*session.Store
	*eventlog.Log
}

// NewReplica returns a replica that does nothing by itself.
func NewReplica(pool *pgxpool.Pool, events eventlog.Options, sessions session.Options) *Replica {
	log := eventlog.New(pool, events)
	return &Replica{session.New(pool, log, sessions), log}
}

// Replica starts a replica with a pool of its own on the world's database.
func (w *World) Replica(t testing.TB) *Replica {
	t.Helper()
	r := NewReplica(dbtest.Pool(t, w.DSN), eventlog.Options{}, session.Options{})
	r.Start(t)
	return r
}

// Still returns a replica that does nothing by itself.
func (w *World) Still(t testing.TB) *Replica {
	t.Helper()
	return NewReplica(dbtest.Pool(t, w.DSN), eventlog.Options{}, session.Options{})
}

// Start runs the replica until the test ends, and waits until it listens.
func (r *Replica) Start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var parts errgroup.Group
	parts.Go(func() error { return r.Log.Run(ctx) })
	parts.Go(func() error { return r.Store.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		if err := wait.Result(t, "the end of the replica", parts.Wait); err != nil {
			t.Errorf("replica: %v", err)
		}
	})
	wait.For(t, "the replica listens", r.IsListening)
}

// Begin starts a session with a turn and claims it.
func (w *World) Begin(t testing.TB, s *Replica, command string) (eventlog.Lease, eventlog.From) {
	t.Helper()
	var from eventlog.From
	turn := uuid.Must(uuid.NewV7())
	err := s.Open(t.Context(), session.Ref{Workspace: w.Workspace.ID}, func(tx *session.Tx) (err error) {
		from, _, err = tx.Begin(t.Context(), session.NewTurn{ID: turn, Message: event.Message{Content: command}, MaxResponseSeconds: 600,
			MaxTurns: 50})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return Claim(t, s, from.Session, turn), from
}

// Claim claims a queued turn.
func Claim(t testing.TB, s *Replica, id, turn uuid.UUID) eventlog.Lease {
	t.Helper()
	got, err := s.ClaimTurn(t.Context(), session.ClaimRequest{Session: id, Turn: turn, Lease: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Ours {
		t.Fatalf("the turn cannot be claimed: %+v", got)
	}
	return got.Lease
}

// End completes the turn of a lease.
func End(t testing.TB, s *Replica, l eventlog.Lease) {
	t.Helper()
	err := s.Update(t.Context(), l.Session, func(tx *session.Tx) error {
		c, err := tx.ReadClosing(t.Context(), session.Turn{ID: l.Turn, SessionID: l.Session})
		if err != nil {
			return err
		}
		ok, err := tx.EndTurn(t.Context(), c, session.Ending{Trigger: session.Complete, Epoch: l.Epoch, Halted: true})
		if err == nil && !ok {
			t.Error("another caller ended the turn")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
