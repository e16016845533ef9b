package session_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

// TestTextWaitsForOtherWritersOnly has an appender with an hour of patience: the text of a lone
// writer is committed at once, that of two writers waits until one of them waits for its commit.
func TestTextWaitsForOtherWritersOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := session.New(dbtest.Pool(t, w.dsn), session.Options{Patience: time.Hour, Appenders: 1})
	run(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	first, fromFirst := w.begin(t, s, "first")
	second, fromSecond := w.begin(t, s, "second")
	a, b := s.Writer(first), s.Writer(second)

	for i := range 5 {
		text := fmt.Sprint("alone ", i)
		w.append(t, ctx, a, event.Text{Text: text})
		await(t, "a lone writer's text is committed", func() bool { return w.last(t, s, fromFirst) == event.Body(event.Text{Text: text}) })
	}
	seenFirst, seenSecond := len(w.rows(t, s, fromFirst)), len(w.rows(t, s, fromSecond))
	for i := range 20 {
		w.append(t, ctx, b, event.Text{Text: fmt.Sprint("b ", i)})
		for range 5 { // time enough for a commit
			if n := len(w.rows(t, s, fromSecond)); n > seenSecond {
				t.Fatalf("round %d did not wait for the other writer's text", i)
			}
		}
		w.append(t, ctx, a, event.Text{Text: fmt.Sprint("a ", i)})
		if i%2 == 0 {
			w.append(t, ctx, b, event.ToolUse{Tool: "t"})
		} else if err := b.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if err := a.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		evsFirst, evsSecond := w.rows(t, s, fromFirst), w.rows(t, s, fromSecond)
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

// append appends events, which must be taken.
func (w *world) append(t testing.TB, ctx context.Context, out *session.Writer, bodies ...event.Body) {
	t.Helper()
	if err := out.Append(ctx, bodies...); err != nil {
		t.Fatal(err)
	}
}

// last is the newest event of a session, or nil.
func (w *world) last(t testing.TB, s *session.Store, from session.From) event.Body {
	t.Helper()
	evs := w.rows(t, s, from)
	if len(evs) == 0 {
		return nil
	}
	body, err := evs[len(evs)-1].Body()
	if err != nil {
		t.Fatal(err)
	}
	return body
}
