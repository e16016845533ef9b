package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/testing/sessiontest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestBatchKeepsSessionsApart lets many turns write text and calls at once, so that their rows
// share batches; some turns lose their lease. Every reader gets the rows of its own session as the
// table has them, every call stays at its place in the text, and turns without a lease write
// nothing.
func TestBatchKeepsSessionsApart(t *testing.T) {
	t.Parallel()
	w := sessiontest.New(t)
	s := w.Replica(t)
	const sessions, each = 12, 200

	var wg sync.WaitGroup
	for n := range sessions {
		lease, from := w.Begin(t, s, fmt.Sprint("session ", n))
		lost := n%4 == 3
		if lost {
			lease.Epoch--
		}
		var want strings.Builder
		for i := range each {
			fmt.Fprintf(&want, "%d.%d ", n, i)
			if i%10 == 9 {
				want.WriteString("[call] ")
			}
		}
		wg.Go(func() {
			out := s.Writer(lease)
			for i := range each {
				err := out.Append(t.Context(), event.Text{Text: fmt.Sprintf("%d.%d ", n, i)})
				if i%10 == 9 && err == nil {
					err = out.Append(t.Context(), event.ToolUse{Tool: "t"})
				}
				if lost && errors.Is(err, eventlog.ErrLeaseLost) {
					return
				}
				if err != nil {
					t.Errorf("session %d: %v", n, err)
					return
				}
			}
			if lost {
				t.Errorf("session %d wrote under a lost lease", n)
				return
			}
			sessiontest.End(t, s, lease)
		})
		wg.Go(func() {
			if lost {
				return
			}
			seen, err := s.UntilDone(context.WithoutCancel(t.Context()), from)
			if err != nil {
				t.Errorf("session %d: %v", n, err)
			}
			if diff := cmp.Diff(s.Rows(t, from), seen); diff != "" {
				t.Errorf("session %d: the reader's events differ from the table:\n%s", n, diff)
			}
			var got strings.Builder
			for i, ev := range seen {
				if ev.Ord != seen[0].Ord+int64(i) {
					t.Errorf("session %d: ordinal %d follows %d", n, ev.Ord, seen[i-1].Ord)
				}
				switch body, _ := ev.Body(); b := body.(type) {
				case event.Text:
					got.WriteString(b.Text)
				case event.ToolUse:
					got.WriteString("[call] ")
				}
			}
			if got.String() != want.String() {
				t.Errorf("the stored text of session %d differs from the written text", n)
			}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
}

// TestHugeEventIsFollowed writes a reply larger than the session's memory buffer, to a reader that
// has everything before it.
func TestHugeEventIsFollowed(t *testing.T) {
	t.Parallel()
	w := sessiontest.New(t)
	s := w.Replica(t)
	lease, from := w.Begin(t, s, "hello")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	caughtUp, written := false, make(chan error, 1)
	for evs, err := range s.Follow(ctx, from) {
		if err != nil {
			t.Fatal(err)
		}
		last := evs[len(evs)-1]
		if last.Kind == event.KindReply {
			if err := wait.Receive(t, "the writers", written); err != nil {
				t.Error(err)
			}
			return
		}
		if last.Kind == event.KindStarted && !caughtUp {
			caughtUp = true
			go func() { written <- s.Writer(lease).Append(ctx, event.Reply{Text: strings.Repeat("x", 300<<10)}) }()
		}
	}
}
