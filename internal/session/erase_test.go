package session_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/sessiontest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// A caller whose session is erased while their message waits for it continues in another session.
func TestACallerGoesOnInAnotherSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var erasing chan struct{}
	waiting := func() bool {
		return w.Count(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND `+
			`query LIKE '%SessionLock%'`) > 0
	}
	s := sessiontest.NewReplica(w.Pool, eventlog.Options{},
		session.Options{Erase: []session.Eraser{func(context.Context, pgx.Tx, uuid.UUID, uuid.UUID) error {
			close(erasing)
			wait.For(t, "the message waits for the lock", waiting)
			return nil
		}}})
	say := func() (id uuid.UUID, err error) {
		err = s.Open(t.Context(), session.Ref{Workspace: w.Workspace.ID, CallerID: "anna"}, func(tx *session.Tx) error {
			id = tx.SessionID()
			_, _, err := tx.Begin(t.Context(), session.NewTurn{ID: uuid.Must(uuid.NewV7()), Message: event.Message{Content: "hello"},
				MaxResponseSeconds: 1, MaxTurns: 1})
			return err
		})
		return id, err
	}
	first, err := say()
	if err != nil {
		t.Fatal(err)
	}
	erased := make(chan error, 1)
	erasing = make(chan struct{})
	go func() {
		done, err := s.Store.EraseContent(t.Context(), first, "cli:test")
		if done.Canceled != 1 {
			t.Errorf("%+v", done)
		}
		erased <- err
	}()
	wait.Receive(t, "the erasure to begin", erasing)
	second, err := say()
	if err != nil || second == first {
		t.Errorf("%s after %s, %v", second, first, err)
	}
	if err := wait.Receive(t, "the erasure", erased); err != nil {
		t.Error(err)
	}
}

// A client that reads a session while it is erased receives ErrGone and no row without its content.
func TestAReaderSeesNoErasedRow(t *testing.T) {
	t.Parallel()
	slow.Test(t, "races many writers")
	w := newWorld(t)
	s := w.Still(t)
	lease, from := w.Begin(t, s, "hello")
	err := s.Update(t.Context(), from.Session, func(tx *session.Tx) error {
		for range 500 {
			if _, err := tx.Append(t.Context(), lease.Turn, event.ToolUse{Tool: "t"}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	for evs, err := range s.After(t.Context(), from) {
		if pages++; pages == 1 {
			if err != nil || len(evs) > 400 {
				t.Fatalf("the first page has %d rows, %v", len(evs), err)
			}
			if done, err := s.Store.EraseContent(t.Context(), from.Session, "cli:test"); err != nil || done.Canceled != 1 {
				t.Fatalf("%+v, %v", done, err)
			}
			continue
		}
		if !errors.Is(err, eventlog.ErrGone) || evs != nil {
			t.Errorf("page %d: %d rows, %v", pages, len(evs), err)
		}
	}
	if pages != 2 {
		t.Errorf("%d pages", pages)
	}
	// A client that had every earlier event still receives the end.
	from.Seq = int64(w.Count(t, `SELECT seq FROM events WHERE session_id = $1 ORDER BY seq DESC OFFSET 2 LIMIT 1`, from.Session))
	got, err := s.Stored(t.Context(), from)
	if err != nil || len(got) != 2 || got[0].Kind != event.KindError || got[1].Kind != event.KindDone {
		t.Errorf("%v, %v", got, err)
	}
	if n := w.Count(t, `SELECT count(*) FROM erasures WHERE session_id = $1 AND by = 'cli:test'`, from.Session); n != 1 {
		t.Errorf("%d erasures are noted", n)
	}
}
