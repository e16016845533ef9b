package eventlog_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/sessiontest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestTextWaitsForOtherWritersOnly uses an appender with an hour of patience. The text of a lone
// writer is committed at once; the text of two writers waits until one of them waits for its
// commit.
func TestTextWaitsForOtherWritersOnly(t *testing.T) {
	t.Parallel()
	w := sessiontest.New(t)
	s := sessiontest.NewReplica(dbtest.Pool(t, w.DSN), eventlog.Options{Patience: time.Hour, Appenders: 1}, session.Options{})
	s.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	first, fromFirst := w.Begin(t, s, "first")
	second, fromSecond := w.Begin(t, s, "second")
	a, b := s.Writer(first), s.Writer(second)

	for i := range 5 {
		text := fmt.Sprint("alone ", i)
		appendAll(ctx, t, a, event.Text{Text: text})
		wait.For(t, "a lone writer's text is committed", func() bool { return lastEvent(t, s, fromFirst) == event.Body(event.Text{Text: text}) })
	}
	seenFirst, seenSecond := len(s.Rows(t, fromFirst)), len(s.Rows(t, fromSecond))
	for i := range 20 {
		appendAll(ctx, t, b, event.Text{Text: fmt.Sprint("b ", i)})
		for range 5 { // enough time for a commit
			if n := len(s.Rows(t, fromSecond)); n > seenSecond {
				t.Fatalf("round %d did not wait for the other writer's text", i)
			}
		}
		appendAll(ctx, t, a, event.Text{Text: fmt.Sprint("a ", i)})
		if i%2 == 0 {
			appendAll(ctx, t, b, event.ToolUse{Tool: "t"})
		} else if err := b.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if err := a.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		evsFirst, evsSecond := s.Rows(t, fromFirst), s.Rows(t, fromSecond)
		evs := slices.Concat(evsFirst[seenFirst:], evsSecond[seenSecond:])
		seenFirst, seenSecond = len(evsFirst), len(evsSecond)
		if len(evs) != 3-i%2 {
			t.Fatalf("round %d wrote %d rows", i, len(evs))
		}
		for _, ev := range evs {
			if !ev.At.Equal(evs[0].At) {
				t.Errorf("round %d took more than one commit: %s at %v, %s at %v", i, evs[0].Data, evs[0].At, ev.Data, ev.At)
			}
		}
	}
}

// appendAll appends events and fails if one is rejected.
func appendAll(ctx context.Context, t testing.TB, out *eventlog.Writer, bodies ...event.Body) {
	t.Helper()
	if err := out.Append(ctx, bodies...); err != nil {
		t.Fatal(err)
	}
}

// lastEvent returns the newest event of a session, or nil.
func lastEvent(t testing.TB, s *sessiontest.Replica, from eventlog.From) event.Body {
	t.Helper()
	evs := s.Rows(t, from)
	if len(evs) == 0 {
		return nil
	}
	body, err := evs[len(evs)-1].Body()
	if err != nil {
		t.Fatal(err)
	}
	return body
}
