package eventlog_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/sessiontest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestLoneReplicaSendsNoNotifications appends while a replica knows that it is the only one, and
// again after another replica has greeted it.
func TestLoneReplicaSendsNoNotifications(t *testing.T) {
	t.Parallel()
	w := sessiontest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	heard, err := pgx.Connect(ctx, w.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer heard.Close(context.WithoutCancel(ctx))
	next := func() string {
		n, err := heard.WaitForNotification(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return n.Payload
	}
	s := w.Replica(t)
	if _, err := heard.Exec(ctx, "LISTEN parley"); err != nil {
		t.Fatal(err)
	}

	s.NodesSeen([]int32{s.Node()})
	w.Begin(t, s, "not announced")
	s.NodesSeen([]int32{s.Node(), s.Node() + 1}) // well within the validity of a check
	_, from := w.Begin(t, s, "announced")
	if got, want := next(), payload(s, from); got != want {
		t.Errorf("the first notification is %q, want %q", got, want)
	}

	s.NodesSeen([]int32{s.Node()})
	w.Replica(t) // sends a greeting
	wait.For(t, "the replica notifies again", func() bool {
		_, from := w.Begin(t, s, "hello")
		brief, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		for {
			n, err := heard.WaitForNotification(brief)
			if err != nil {
				return false
			}
			if n.Payload == payload(s, from) {
				return true
			}
		}
	})
}

// payload returns the notification that a replica sends for a session.
func payload(s *sessiontest.Replica, from eventlog.From) string {
	return fmt.Sprintf("%d %s", s.Node(), base64.RawURLEncoding.EncodeToString(from.Session[:]))
}

// TestReaderOfANewTurnNeedsNoQuery follows a turn from its start while the table of events is
// renamed.
func TestReaderOfANewTurnNeedsNoQuery(t *testing.T) {
	t.Parallel()
	w := sessiontest.New(t)
	s := w.Replica(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var from eventlog.From
	err := s.Open(ctx, session.Ref{Workspace: w.Workspace.ID}, func(tx *session.Tx) (err error) {
		from, _, err = tx.Begin(ctx, session.NewTurn{ID: uuid.Must(uuid.NewV7()), Message: event.Message{Content: "hello"},
			MaxResponseSeconds: 600, MaxTurns: 50})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Pool.Exec(ctx, `ALTER TABLE events RENAME TO hidden`); err != nil {
		t.Fatal(err)
	}
	for evs, err := range s.Follow(ctx, from) {
		if err != nil {
			t.Fatal(err)
		}
		if len(evs) != 1 || evs[0].Kind != event.KindOpen || evs[0].Seq != from.Seq+1 {
			t.Errorf("the stream begins with %+v, want the open event after %d", evs, from.Seq)
		}
		break
	}
}
