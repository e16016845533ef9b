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
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/sessiontest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestFollowMissesNothing(t *testing.T) {
	t.Parallel()
	w := sessiontest.New(t)
	here, there := w.Replica(t), w.Replica(t)
	lease, from := w.Begin(t, here, "hello")

	var wg sync.WaitGroup
	seen := make([][]event.Event, 6)
	for i := range seen {
		s := []*sessiontest.Replica{here, there}[i%2]
		wg.Go(func() {
			var err error
			if seen[i], err = s.UntilDone(t.Context(), from); err != nil {
				t.Errorf("reader %d: %v", i, err)
			}
		})
	}
	out := here.Writer(lease)
	var want strings.Builder
	for i := range 3000 {
		word := fmt.Sprintf("%d ", i)
		want.WriteString(word)
		if err := out.Append(t.Context(), event.Text{Text: word}); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	sessiontest.End(t, here, lease)
	wait.Until(t, "all goroutines", wg.Wait)

	rows := here.Rows(t, from)
	for i := range seen {
		if diff := cmp.Diff(rows, seen[i]); diff != "" {
			t.Fatalf("the events of reader %d differ from the table (-table +reader):\n%s", i, diff)
		}
	}
	var got strings.Builder
	for i, ev := range rows {
		if ev.Ord != int64(i)+rows[0].Ord {
			t.Fatalf("ordinal %d follows %d", ev.Ord, rows[0].Ord+int64(i)-1)
		}
		if body, _ := ev.Body(); ev.Kind == event.KindText {
			got.WriteString(body.(event.Text).Text)
		}
	}
	if got.String() != want.String() {
		t.Fatal("the deltas do not concatenate to the written text")
	}
	var answer string
	if err := w.Pool.QueryRow(t.Context(), `SELECT content FROM messages WHERE turn_id = $1 AND role = 'assistant'`,
		lease.Turn).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	if answer != want.String() {
		t.Fatal("the stored answer is not the concatenation of the deltas")
	}
}

// TestForeignWritersLoseNothing lets eight processes append to one session while a reader tails it
// by cursor. A plain bigserial, appended to without the session's lock, loses rows in the same
// test: TestPlainSerialLosesRows.
func TestForeignWritersLoseNothing(t *testing.T) {
	t.Parallel()
	slow.Test(t, "races many writers")
	w := sessiontest.New(t)
	reader := w.Replica(t)
	lease, from := w.Begin(t, reader, "hello")
	const writers, each = 8, 150

	seen := make(chan []event.Event, 1)
	go func() {
		evs, err := reader.UntilDone(t.Context(), from)
		if err != nil {
			t.Errorf("reader: %v", err)
		}
		seen <- evs
	}()
	var wg sync.WaitGroup
	for range writers {
		s := w.Replica(t)
		wg.Go(func() {
			out := s.Writer(lease)
			for i := range each {
				if err := out.Append(t.Context(), event.ToolUse{Tool: "t", Summary: fmt.Sprint(i)}); err != nil {
					t.Errorf("append: %v", err)
					return
				}
			}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
	sessiontest.End(t, reader, lease)
	got := wait.Receive(t, "what a reader saw", seen)
	if diff := cmp.Diff(reader.Rows(t, from), got); diff != "" {
		t.Fatalf("the reader's events differ from the table:\n%s", diff)
	}
	uses := 0
	for _, ev := range got {
		if ev.Kind == event.KindToolUse {
			uses++
		}
	}
	if uses != writers*each {
		t.Fatalf("%d tool calls, want %d", uses, writers*each)
	}
}

// TestPlainSerialLosesRows shows that the test above can fail: without the lock, a
// row becomes visible after a row with a greater seq, behind the reader's cursor.
func TestPlainSerialLosesRows(t *testing.T) {
	t.Parallel()
	w := sessiontest.New(t)
	if _, err := w.Pool.Exec(t.Context(), `CREATE TABLE plain (seq bigserial PRIMARY KEY)`); err != nil {
		t.Fatal(err)
	}
	slow, err := w.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := slow.Exec(t.Context(), `INSERT INTO plain DEFAULT VALUES`); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Pool.Exec(t.Context(), `INSERT INTO plain DEFAULT VALUES`); err != nil {
		t.Fatal(err)
	}
	var cursor int64
	if err := w.Pool.QueryRow(t.Context(), `SELECT max(seq) FROM plain`).Scan(&cursor); err != nil {
		t.Fatal(err)
	}
	if err := slow.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	var late, total int
	if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE seq > $1), count(*) FROM plain`, cursor).Scan(&late,
		&total); err != nil {
		t.Fatal(err)
	}
	if total != 2 || late != 0 {
		t.Fatalf("the reader at cursor %d finds %d of %d rows after it; has the race that this log prevents disappeared?", cursor, late, total)
	}
}

func TestLostLeaseWritesNothing(t *testing.T) {
	t.Parallel()
	w := sessiontest.New(t)
	s := w.Replica(t)
	old, from := w.Begin(t, s, "hello")
	out := s.Writer(old)
	if err := out.Append(t.Context(), event.ToolUse{Tool: "t"}); err != nil {
		t.Fatal(err)
	}
	err := s.Update(t.Context(), old.Session, func(tx *session.Tx) error {
		ok, err := tx.ReleaseTurn(t.Context(), old, event.AfterCrash)
		if !ok {
			t.Error("the lease was not the newest")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	now := sessiontest.Claim(t, s, old.Session, old.Turn)
	before := len(s.Rows(t, from))

	if err := out.Append(t.Context(), event.Text{Text: "ghost"}); err != nil {
		t.Fatalf("text is acknowledged later, but append failed: %v", err)
	}
	if err := out.Flush(t.Context()); !errors.Is(err, eventlog.ErrLeaseLost) {
		t.Fatalf("flush under a lost lease: %v", err)
	}
	if err := out.Append(t.Context(), event.ToolUse{Tool: "t"}); !errors.Is(err, eventlog.ErrLeaseLost) {
		t.Fatalf("append under a lost lease: %v", err)
	}
	err = s.Update(t.Context(), old.Session, func(tx *session.Tx) error {
		c, err := tx.ReadClosing(t.Context(), session.Turn{ID: old.Turn, SessionID: old.Session})
		if err != nil {
			return err
		}
		ok, err := tx.EndTurn(t.Context(), c, session.Ending{Trigger: session.Complete, Epoch: old.Epoch})
		if ok {
			t.Error("a lost lease ended the turn")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if after := len(s.Rows(t, from)); after != before {
		t.Fatalf("%d rows were written under a lost lease", after-before)
	}
	if err := s.Writer(now).Append(t.Context(), event.ToolUse{Tool: "t"}); err != nil {
		t.Fatalf("the new holder cannot write: %v", err)
	}
}

func TestLostListenerLosesNothing(t *testing.T) {
	t.Parallel()
	w := sessiontest.New(t)
	here, there := w.Replica(t), w.Replica(t)
	lease, from := w.Begin(t, here, "hello")
	seen := make(chan []event.Event, 1)
	go func() {
		evs, err := there.UntilDone(t.Context(), from)
		if err != nil {
			t.Errorf("reader: %v", err)
		}
		seen <- evs
	}()
	out := here.Writer(lease)
	for i := range 600 {
		if err := out.Append(t.Context(), event.ToolUse{Tool: "t", Summary: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		if i%100 == 50 {
			if _, err := w.Pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = `+
				`'parley listener' AND datname = current_database()`); err != nil {
				t.Fatal(err)
			}
		}
	}
	sessiontest.End(t, here, lease)
	if diff := cmp.Diff(here.Rows(t, from), wait.Receive(t, "what a reader saw", seen)); diff != "" {
		t.Fatalf("the events of the reader behind the broken listener differ from the table:\n%s", diff)
	}
}

// TestLostNotificationIsFound writes a row like a writer that dies between its commit and its
// notification.
func TestLostNotificationIsFound(t *testing.T) {
	t.Parallel()
	w := sessiontest.New(t)
	here := w.Replica(t)
	lease, from := w.Begin(t, here, "hello")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	silent := false
	for evs, err := range here.Follow(ctx, from) {
		if err != nil {
			t.Fatalf("the row without a notification never arrived: %v", err)
		}
		last := evs[len(evs)-1]
		if last.Kind == event.KindToolUse {
			return
		}
		if silent || last.Kind != event.KindStarted {
			continue
		}
		silent = true
		err = pgx.BeginFunc(ctx, w.Pool, func(tx pgx.Tx) error {
			var ord int64
			if err := tx.QueryRow(ctx, `SELECT last_ord FROM sessions WHERE id = $1 FOR NO KEY UPDATE`, lease.Session).Scan(&ord); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `WITH e AS (
				INSERT INTO events (session_id, turn_id, at, delta, ord, kind, data)
				VALUES ($1, $2, clock_timestamp(), false, $3, 'tool_use', '{"v":1}') RETURNING seq)
				UPDATE sessions SET last_seq = e.seq, last_ord = $3 FROM e WHERE id = $1`, lease.Session, lease.Turn, ord+1)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
