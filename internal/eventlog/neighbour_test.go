package eventlog_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/testing/sessiontest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestLockedSessionHoldsUpNoOther appends to a session that another transaction has locked, and at
// the same time to a second session.
func TestLockedSessionHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := sessiontest.New(t)
	s := w.Replica(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	locked, _ := w.Begin(t, s, "locked")
	free, _ := w.Begin(t, s, "free")
	lock, err := w.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := lock.Exec(ctx, `SELECT FROM sessions WHERE id = $1 FOR NO KEY UPDATE`, locked.Session); err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	go func() { waits <- s.Writer(locked).Append(ctx, event.ToolUse{Tool: "t"}) }()
	out := s.Writer(free)
	for range 20 {
		if err := out.Append(ctx, event.ToolUse{Tool: "t"}); err != nil {
			t.Fatalf("the other session: %v", err)
		}
	}
	select {
	case err := <-waits:
		t.Fatalf("the locked session was written: %v", err)
	default:
	}
	if err := lock.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := wait.Receive(t, "the waiting call", waits); err != nil {
		t.Errorf("the locked session: %v", err)
	}
}

// TestRefusedEventFailsItsWriterAlone makes PostgreSQL reject the events of one session in batches
// that it shares with other sessions.
func TestRefusedEventFailsItsWriterAlone(t *testing.T) {
	t.Parallel()
	w := sessiontest.New(t)
	if _, err := w.Pool.Exec(t.Context(), `
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'too large' USING ERRCODE = '54000'; END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW WHEN (NEW.data::text LIKE '%poison%') EXECUTE FUNCTION refuse()`); err != nil {
		t.Fatal(err)
	}
	s := w.Replica(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for range 8 {
		lease, _ := w.Begin(t, s, "good")
		wg.Go(func() {
			out := s.Writer(lease)
			for range 50 {
				if err := out.Append(ctx, event.ToolUse{Tool: "t"}); err != nil {
					t.Errorf("a good session: %v", err)
					return
				}
			}
		})
	}
	lease, from := w.Begin(t, s, "bad")
	wg.Go(func() {
		out := s.Writer(lease)
		_ = out.Append(ctx, event.ToolUse{Tool: "t"})
		if err := out.Append(ctx, event.Reply{Text: "poison"}); !errors.Is(err, eventlog.ErrRefused) {
			t.Errorf("the refused event: %v", err)
		}
		if err := out.Append(ctx, event.ToolUse{Tool: "later"}); !errors.Is(err, eventlog.ErrRefused) {
			t.Errorf("after the rejected event: %v", err)
		}
	})
	wait.Until(t, "all goroutines", wg.Wait)
	for _, ev := range s.Rows(t, from) {
		if body, _ := ev.Body(); body == (event.ToolUse{Tool: "later"}) {
			t.Error("an event was written after a rejected one")
		}
	}
}
