package session_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/sessiontest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestRestIsStoredWithTheEnd writes answers while other transactions lock their sessions, so that
// some rows still wait for their commit when the answer is complete. The stream, the message, the
// ordinals and the head contain the whole answer exactly once.
func TestRestIsStoredWithTheEnd(t *testing.T) {
	t.Parallel()
	slow.Test(t, "writes many rows")
	w := newWorld(t)
	s := w.Replica(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	for range 8 {
		g.Go(func() error {
			for range 6 {
				if err := w.answer(ctx, t, s); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := wait.Result(t, "all goroutines", g.Wait); err != nil {
		t.Fatal(err)
	}
}

// answer writes one answer and compares the stored answer with it.
func (w *world) answer(ctx context.Context, t *testing.T, s *sessiontest.Replica) error {
	lease, from := w.Begin(t, s, "hello")
	ended, end := context.WithCancel(ctx)
	defer end()
	var locks errgroup.Group
	locks.Go(func() error {
		for ended.Err() == nil {
			_ = s.Update(ended, lease.Session, func(*session.Tx) error { pauseUpTo(5 * time.Millisecond); return nil })
			pauseUpTo(5 * time.Millisecond)
		}
		return nil
	})
	said := ""
	out := s.Writer(lease)
	for i := range rand.IntN(40) {
		piece := fmt.Sprintf("%d ", i)
		said += piece
		if err := out.Append(ctx, event.Text{Text: piece}); err != nil {
			return err
		}
		pauseUpTo(2 * time.Millisecond)
	}
	if err := out.Queue(ctx, event.Reply{Text: said}); err != nil {
		return err
	}
	rest, err := out.Rest(ctx)
	if err != nil {
		return err
	}
	err = s.Update(ctx, lease.Session, func(tx *session.Tx) error {
		c, err := tx.ReadClosing(ctx, session.Turn{ID: lease.Turn, SessionID: lease.Session})
		if err != nil {
			return err
		}
		_, err = tx.EndTurn(ctx, c, session.Ending{Trigger: session.Complete, Epoch: lease.Epoch, Halted: true, Rest: rest})
		return err
	})
	end()
	if err := errors.Join(err, wait.Result(t, "locks", locks.Wait)); err != nil {
		return err
	}
	return w.compare(ctx, s, lease, from, said)
}

// compare fails unless the log, the message and the stream contain exactly the written text.
func (w *world) compare(ctx context.Context, s *sessiontest.Replica, lease eventlog.Lease, from eventlog.From, said string) error {
	evs, err := s.UntilDone(ctx, from)
	if err != nil {
		return err
	}
	streamed, replies := "", 0
	for i, ev := range evs {
		body, err := ev.Body()
		if err != nil || ev.Ord != evs[0].Ord+int64(i) {
			return fmt.Errorf("event %d has the ordinal %d: %v", i, ev.Ord, err)
		}
		switch b := body.(type) {
		case event.Text:
			streamed += b.Text
		case event.Reply:
			replies++
		}
	}
	var content string
	var lastOrd, lastSeq int64
	err = w.Pool.QueryRow(ctx, `SELECT m.content, s.last_ord, s.last_seq FROM messages m JOIN sessions s ON s.id = m.session_id
		WHERE m.turn_id = $1 AND m.role = 'assistant'`, lease.Turn).Scan(&content, &lastOrd, &lastSeq)
	last := evs[len(evs)-1]
	if err != nil || streamed != said || content != said || replies != 1 || last.Ord != lastOrd || last.Seq != lastSeq {
		return fmt.Errorf("wrote %q, streamed %q, stored %q with %d replies; the last event is %d/%d, the head %d/%d: %v",
			said, streamed, content, replies, last.Seq, last.Ord, lastSeq, lastOrd, err)
	}
	return nil
}

// pauseUpTo lets events happen in another order; it synchronises nothing.
func pauseUpTo(d time.Duration) { <-time.After(rand.N(d)) }
