package session_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/dbtest/faultproxy"
	"github.com/parley-server/parley/internal/testing/sessiontest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// answered is a turn whose answer is complete.
type answered struct {
	lease eventlog.Lease
	from  eventlog.From
	text  string
	cost  float64
	ended bool
	err   error
}

func (w *world) answered(t testing.TB, s *sessiontest.Replica, text string) *answered {
	t.Helper()
	a := &answered{text: text, cost: 0.25}
	a.lease, a.from = w.Begin(t, s, "hello")
	return a
}

// complete ends a turn. The last events of the turn are stored with its end.
func (a *answered) complete(ctx context.Context, s *sessiontest.Replica) {
	t := session.Turn{ID: a.lease.Turn, SessionID: a.lease.Session, CreatedAt: a.from.Since}
	e := session.Ending{Trigger: session.Complete, Epoch: a.lease.Epoch, Halted: true, Rest: []event.Body{
		event.Text{Text: a.text}, event.Reply{Usage: event.Usage{InputTokens: 3, OutputTokens: 4, CostUSD: &a.cost}}}}
	a.ended, a.err = s.CompleteTurn(ctx, t, e)
}

// isWhole checks that the answer of a turn is stored once or not at all.
func (w *world) isWhole(t testing.TB, s *sessiontest.Replica, a *answered) (ended bool) {
	t.Helper()
	var content, state string
	var ord, input int64
	var cost float64
	err := w.Pool.QueryRow(t.Context(), `
		SELECT coalesce(m.content, ''), t.state, s.last_ord, s.input_tokens, coalesce(s.cost_usd, 0)
		FROM turns t JOIN sessions s ON s.id = t.session_id JOIN messages m ON m.turn_id = t.id AND m.role = 'assistant'
		WHERE t.id = $1`, a.lease.Turn).Scan(&content, &state, &ord, &input, &cost)
	if err != nil {
		t.Fatal(err)
	}
	done, text := 0, ""
	rows := s.Rows(t, eventlog.From{Session: a.lease.Session})
	for i, ev := range rows {
		if ev.Ord != int64(i)+1 {
			t.Errorf("ordinal %d is in place %d", ev.Ord, i+1)
		}
		switch ev.Kind {
		case event.KindDone:
			done++
		case event.KindText:
			body, _ := ev.Body()
			text += body.(event.Text).Text
		}
	}
	ended = state == string(session.Completed)
	if want := map[bool]string{true: a.text}[ended]; content != want || text != want {
		t.Errorf("%q: the message has %q, the log %q, and the turn is %s", a.text, content, text, state)
	}
	if want := map[bool]int{true: 1}[ended]; done != want || ord != int64(len(rows)) || input != int64(3*want) ||
		cost != float64(want)*a.cost {
		t.Errorf("the turn is %s with %d done, ordinal %d of %d rows, %d tokens, $%f", state, done, ord, len(rows), input, cost)
	}
	return ended
}

// hold blocks the start and the end of turns until release is called.
func (w *world) hold(t testing.TB) (release func()) {
	t.Helper()
	tx, err := w.Pool.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `LOCK TABLE messages IN EXCLUSIVE MODE`)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = tx.Rollback(t.Context()) }
}

// awaitHeld waits until a transaction waits for hold.
func (w *world) awaitHeld(t testing.TB) {
	t.Helper()
	wait.For(t, "the first transaction waits", func() bool {
		var n int
		err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
			WHERE d.datname = current_database() AND l.relation = 'messages'::regclass AND NOT l.granted`).Scan(&n)
		return err == nil && n > 0
	})
}

// gather ends turns in one transaction, which waits until release is called.
func (w *world) gather(ctx context.Context, t testing.TB, s, control *sessiontest.Replica, all []*answered) (done *errgroup.Group,
	release func()) {
	t.Helper()
	first := w.answered(t, control, "in front")
	release = w.hold(t)
	done = new(errgroup.Group)
	done.Go(func() error { first.complete(ctx, s); return nil })
	w.awaitHeld(t)
	for _, a := range all {
		done.Go(func() error { a.complete(ctx, s); return nil })
	}
	wait.For(t, "the others queue", func() bool { return session.EndsWaiting(s.Store) == len(all) })
	return done, release
}

// TestEndsOfOneTransaction ends turns together. An end that PostgreSQL rejects, one whose session
// is locked, one without its lease and one followed by another message do not affect the others.
func TestEndsOfOneTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.Replica(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	good, locked, lost, followed, other := w.answered(t, s, "good"), w.answered(t, s, "locked"), w.answered(t, s, "lost"),
		w.answered(t, s, "followed"), w.answered(t, s, "other")
	lost.lease.Epoch++
	behind := session.NewTurn{ID: uuid.Must(uuid.NewV7()), Message: event.Message{Content: "next"}, MaxResponseSeconds: 600, MaxTurns: 50,
		Behind: true}
	if err := s.Update(ctx, followed.lease.Session, func(tx *session.Tx) error {
		_, _, err := tx.Begin(ctx, behind)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	tx, err := w.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `SELECT FROM sessions WHERE id = $1 FOR UPDATE`, locked.lease.Session); err != nil {
		t.Fatal(err)
	}
	for _, rejected := range []*answered{nil, w.answered(t, s, "rejected")} {
		all := []*answered{good, locked, lost, followed}
		if rejected != nil {
			rejected.cost = 1e15 // exceeds the column
			all = []*answered{rejected, other, locked, lost}
		}
		done, release := w.gather(ctx, t, s, s, all)
		release()
		if err := wait.Result(t, "the changes", done.Wait); err != nil {
			t.Fatal(err)
		}
		if rejected != nil && (rejected.ended || !pgerr.IsRefused(rejected.err)) {
			t.Errorf("the rejected end: %v, %v", rejected.ended, rejected.err)
		}
	}
	for _, a := range []*answered{good, other} {
		if !a.ended || a.err != nil || !w.isWhole(t, s, a) {
			t.Errorf("%q: ended %v, %v", a.text, a.ended, a.err)
		}
	}
	for _, a := range []*answered{locked, lost} {
		if a.ended || a.err != nil || w.isWhole(t, s, a) {
			t.Errorf("%q: ended %v, %v", a.text, a.ended, a.err)
		}
	}
	if followed.ended || followed.err != nil {
		t.Errorf("the end followed by another message: %v, %v", followed.ended, followed.err)
	}
}

// TestLostAnswerToEnds breaks the connection at any byte of the commit of some ends. Each turn has
// ended once or not at all, and ends once when its worker retries.
func TestLostAnswerToEnds(t *testing.T) {
	t.Parallel()
	slow.Test(t, "breaks connections")
	w := newWorld(t)
	control := w.Replica(t)
	proxy, dsn := dbtest.Proxy(t, w.DSN)
	direct, err := pgx.ParseConfig(w.DSN)
	if err != nil {
		t.Fatal(err)
	}
	s := sessiontest.NewReplica(dbtest.Pool(t, dsn+"&pool_max_conns=1"), eventlog.Options{Listen: direct}, session.Options{})
	var armed atomic.Pointer[faultproxy.Hook]
	commits := faultproxy.Executes("UPDATE messages m\nSET failure = NULL")
	matches := false
	proxy.OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
		matches = commits(c)
		if hook := armed.Load(); hook != nil {
			return (*hook)(c)
		}
		return faultproxy.Forward
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	outcomes := map[bool]int{} // ends whose response was lost: whether they were committed
	for round := range 12 {
		all := []*answered{w.answered(t, control, "one"), w.answered(t, control, "two"), w.answered(t, control, "three")}
		prepared := w.answered(t, control, "prepared") // prepares the statements on the only connection
		if prepared.complete(ctx, s); prepared.err != nil {
			t.Fatal(prepared.err)
		}
		done, release := w.gather(ctx, t, s, control, all)
		at := rand.IntN(4000)
		if round%2 == 0 { // after the request: PostgreSQL commits
			at = 1 << 20
		}
		var broken atomic.Bool
		hook := faultproxy.CutExchange(func(faultproxy.Chunk) bool { return matches }, at, func() { broken.Store(true) })
		if at == 1<<20 {
			conn := 0
			hook = func(c faultproxy.Chunk) faultproxy.Action {
				switch {
				case conn == 0 && matches:
					conn = c.Conn
				case c.Conn == conn && c.Direction == faultproxy.ToClient && !broken.Swap(true):
					return faultproxy.ResetAfter(0)
				}
				return faultproxy.Forward
			}
		}
		armed.Store(&hook)
		release()
		if err := wait.Result(t, "the changes", done.Wait); err != nil {
			t.Fatal(err)
		}
		armed.Store(nil)
		for _, a := range all {
			// PostgreSQL may still be running the statement: wait for its lock, as an Update would.
			if _, err := w.Pool.Exec(ctx, `SELECT FROM sessions WHERE id = $1 FOR UPDATE`, a.lease.Session); err != nil {
				t.Fatal(err)
			}
			ended := w.isWhole(t, control, a)
			if a.err == nil && !(ended && a.ended) || !broken.Load() && a.err != nil {
				t.Errorf("round %d: %q: ended %v, stored %v, %v", round, a.text, a.ended, ended, a.err)
			}
			if a.err == nil {
				continue
			}
			outcomes[ended]++
			if a.complete(ctx, control); a.ended == ended || a.err != nil || !w.isWhole(t, control, a) {
				t.Errorf("round %d: the retry of %q, which was stored (%v): ended %v, %v", round, a.text, ended, a.ended, a.err)
			}
		}
	}
	t.Logf("ends whose response was lost: %d committed, %d not", outcomes[true], outcomes[false])
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Error("the test proves too little")
	}
}
