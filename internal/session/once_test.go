package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/sessiontest"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestAnIdempotentRequestRunsOnceAndIsAnsweredAlike(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stores := []*sessiontest.Replica{w.Still(t), w.Still(t)}
	o := session.Once{Workspace: w.Workspace.ID, Route: "cancelTurn", Key: "k", Hash: []byte("hash")}
	var runs, first atomic.Int64
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			status, body, replayed, err := stores[i%2].Once(t.Context(), o, func(ctx context.Context) (int, []byte, error) {
				n := runs.Add(1)
				var one int // it has its own connection
				err := w.Pool.QueryRow(ctx, `SELECT 1`).Scan(&one)
				return 200, fmt.Appendf(nil, "answer %d", n), err
			})
			if err != nil || status != 200 || string(body) != "answer 1" {
				t.Errorf("%d %q, %v", status, body, err)
			}
			if !replayed {
				first.Add(1)
			}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
	if runs.Load() != 1 || first.Load() != 1 {
		t.Errorf("it ran %d times, and %d callers got the result of a first run", runs.Load(), first.Load())
	}
}

func TestIdempotencyKeysAreOfAWorkspaceARouteAndARequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := sessiontest.NewReplica(w.Pool, eventlog.Options{}, session.Options{})
	runs := 0
	once := func(o session.Once) (replayed bool, err error) {
		_, _, replayed, err = s.Once(t.Context(), o, func(context.Context) (int, []byte, error) {
			runs++
			return 200, []byte("x"), nil
		})
		return replayed, err
	}
	o := session.Once{Workspace: w.Workspace.ID, Route: "cancelTurn", Key: "k", Hash: []byte("hash")}
	if replayed, err := once(o); replayed || err != nil {
		t.Fatal(replayed, err)
	}
	other := o
	other.Hash = []byte("another")
	if _, err := once(other); fault.From(err) == nil || fault.From(err).Code != fault.IdempotencyKeyReused {
		t.Errorf("another request: %v", err)
	}
	other = o
	other.Route = "decideApproval"
	if replayed, err := once(other); replayed || err != nil {
		t.Errorf("another route: %v, %v", replayed, err)
	}
	if _, err := w.Pool.Exec(t.Context(), `INSERT INTO workspaces (id, slug, name) VALUES ($1, 'other', '')`, uuid.Max); err != nil {
		t.Fatal(err)
	}
	other.Workspace = uuid.Max
	if replayed, err := once(other); replayed || err != nil {
		t.Errorf("another workspace: %v, %v", replayed, err)
	}
	for range 2 {
		if replayed, err := once(session.Once{}); replayed || err != nil {
			t.Errorf("no key: %v, %v", replayed, err)
		}
	}
	if _, err := w.Pool.Exec(t.Context(), `UPDATE idempotent_answers SET created_at = now() - interval '25 hours'`); err != nil {
		t.Fatal(err)
	}
	if replayed, err := once(o); replayed || err != nil {
		t.Errorf("a day later: %v, %v", replayed, err)
	}
	if replayed, err := once(o); !replayed || err != nil {
		t.Errorf("and again: %v, %v", replayed, err)
	}
	if runs != 6 {
		t.Errorf("%d ran", runs)
	}
}

// A failed request is retried, and a failure leaves nothing behind.
func TestFailuresAreNotKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := sessiontest.NewReplica(w.Pool, eventlog.Options{}, session.Options{})
	o := session.Once{Workspace: w.Workspace.ID, Route: "r", Key: "k", Hash: []byte("hash")}
	bad := errors.New("bad")
	for _, want := range []error{bad, fault.New(fault.ApprovalExpired, "Late."), nil} {
		_, _, replayed, err := s.Once(t.Context(), o, func(context.Context) (int, []byte, error) { return 200, []byte("x"), want })
		if replayed || !errors.Is(err, want) {
			t.Errorf("%v, %v; want %v", replayed, err, want)
		}
	}
	if _, _, replayed, err := s.Once(t.Context(), o, nil); !replayed || err != nil {
		t.Errorf("%v, %v", replayed, err)
	}
}

// Many idempotent requests at once leave connections for the work they wait for.
func TestManyIdempotentRequestsDoNotStarveTheirWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := sessiontest.NewReplica(w.Pool, eventlog.Options{}, session.Options{})
	var wg sync.WaitGroup
	for i := range 4 * int(w.Pool.Config().MaxConns) {
		wg.Go(func() {
			o := session.Once{Workspace: w.Workspace.ID, Route: "r", Key: fmt.Sprint(i), Hash: []byte("hash")}
			_, _, _, err := s.Once(t.Context(), o, func(ctx context.Context) (int, []byte, error) {
				return 200, []byte{}, w.Pool.Ping(ctx)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
}
