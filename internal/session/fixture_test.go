package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is one database with a workspace in it.
type world struct {
	dsn       string
	pool      *pgxpool.Pool
	workspace workspace.Workspace
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{dsn: dbtest.DSN(t)}
	w.pool = dbtest.Pool(t, w.dsn)
	ws, err := workspace.New(w.pool).Create(t.Context(), "w", "", "")
	if err != nil {
		t.Fatal(err)
	}
	w.workspace = ws
	return w
}

// replica is a store of its own on the world's database, running.
func (w *world) replica(t testing.TB) *session.Store {
	t.Helper()
	s := session.New(dbtest.Pool(t, w.dsn), session.Options{})
	run(t, s)
	return s
}

// run runs a store until the test ends, and waits until it listens.
func run(t testing.TB, s *session.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("store: %v", err)
		}
	})
	await(t, "the store listens", s.Listening)
}

// begin starts a session with a turn and claims it.
func (w *world) begin(t testing.TB, s *session.Store, command string) (session.Lease, session.From) {
	t.Helper()
	var from session.From
	turn := uuid.Must(uuid.NewV7())
	err := s.Open(t.Context(), session.Ref{Workspace: w.workspace.ID}, func(tx *session.Tx) (err error) {
		from, _, err = tx.Begin(t.Context(), session.NewTurn{ID: turn, Message: event.Message{Content: command}, MaxResponseSeconds: 600, MaxTurns: 50})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return w.claim(t, s, from.Session, turn), from
}

func (w *world) claim(t testing.TB, s *session.Store, id, turn uuid.UUID) session.Lease {
	t.Helper()
	got, err := s.ClaimTurns(t.Context(), []session.ClaimRequest{{Session: id, Turn: turn}}, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if !got[0].Ours {
		t.Fatalf("the turn cannot be claimed: %+v", got[0])
	}
	return got[0].Lease
}

// end completes the turn of a lease.
func (w *world) end(t testing.TB, s *session.Store, l session.Lease) {
	t.Helper()
	err := s.Update(t.Context(), l.Session, func(tx *session.Tx) error {
		c, err := tx.Closing(t.Context(), session.Turn{ID: l.Turn, SessionID: l.Session})
		if err != nil {
			return err
		}
		ok, err := tx.End(t.Context(), c, session.Ending{Trigger: session.Complete, Epoch: l.Epoch, Halted: true})
		if err == nil && !ok {
			t.Error("the turn was ended by somebody else")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// read follows a session until done and returns what it saw.
func read(ctx context.Context, s *session.Store, from session.From) ([]event.Event, error) {
	var all []event.Event
	for evs, err := range s.Follow(ctx, from) {
		if err != nil {
			return all, err
		}
		for _, ev := range evs {
			all = append(all, ev)
			if ev.Kind == event.KindDone {
				return all, nil
			}
		}
	}
	return all, nil
}

// rows is what the table holds of a session after a cursor.
func (w *world) rows(t testing.TB, s *session.Store, from session.From) []event.Event {
	t.Helper()
	var all []event.Event
	for evs, err := range s.After(t.Context(), from) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, evs...)
	}
	return all
}

// await polls a condition that has no signal of its own.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("it never came about that %s", what)
		case <-tick.C:
		}
	}
}
