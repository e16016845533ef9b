package session_test

import (
	"context"
	"errors"
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
	"github.com/parley-server/parley/internal/testing/wait"
)

// opening is the first turn of a new session.
type opening struct {
	workspace, session uuid.UUID
	turn               session.NewTurn
	from               eventlog.From
	err                error
}

func (w *world) opening(content string) *opening {
	turn := session.NewTurn{ID: uuid.Must(uuid.NewV7()), Message: event.Message{Content: content}, Named: "mine", Key: "k",
		Scopes:      []string{"chat", "read"},
		RequestHash: []byte{0, 1}, MaxResponseSeconds: 600, MaxTurns: 50}
	o := &opening{workspace: w.Workspace.ID, session: uuid.Must(uuid.NewV7()), turn: turn}
	o.turn.Job = session.Job{Args: []byte(`{"turn_id":"` + turn.ID.String() + `"}`), Due: time.Unix(0, 0)}
	return o
}

func (o *opening) begin(ctx context.Context, s *sessiontest.Replica) {
	o.from, o.err = s.Begin(ctx, o.workspace, o.session, o.turn)
}

// isOpen checks that either everything that Tx.Begin stores of a first turn is stored, or nothing.
func (w *world) isOpen(t testing.TB, s *sessiontest.Replica, o *opening) (stored bool) {
	t.Helper()
	var jobs, turns, messages int
	err := w.Pool.QueryRow(t.Context(), `SELECT
		(SELECT count(*) FROM river_job j WHERE j.args->>'turn_id' = $1::text),
		(SELECT count(*) FROM turns t JOIN river_job j ON j.id = t.job_id JOIN sessions s ON s.turn_id = t.id
		 WHERE t.id = $1::uuid AND t.state = 'queued' AND t.key_id = 'k' AND t.scopes = '{chat,read}' AND t.request_hash = '\x0001'
		   AND s.last_seq = t.start_seq AND s.last_ord = 2 AND s.title = $2 AND s.message_count = 2),
		(SELECT count(*) FROM messages m WHERE m.turn_id = $1::uuid AND (m.role = 'user' AND m.content = $2 AND m.named = 'mine' AND m.status = 'completed'
		 OR m.role = 'assistant' AND m.content IS NULL AND m.status = 'in_progress'))`,
		o.turn.ID.String(), o.turn.Message.Content).Scan(&jobs, &turns, &messages)
	if err != nil {
		t.Fatal(err)
	}
	rows := s.Rows(t, eventlog.From{Session: o.session})
	stored = len(rows) == 2 && rows[0].Kind == event.KindMessage && rows[1].Kind == event.KindOpen && rows[0].Ord == 1 &&
		rows[1].Ord == 2 && rows[0].Seq < rows[1].Seq
	if !stored && len(rows) != 0 || jobs != turns || messages != 2*turns || stored != (turns == 1) {
		t.Errorf("%q: %d jobs, %d turns, %d messages, %d events", o.turn.Message.Content, jobs, turns, messages, len(rows))
	}
	return stored
}

// gatherBegins begins turns in one transaction, which waits until release is called.
func (w *world) gatherBegins(ctx context.Context, t testing.TB, s *sessiontest.Replica, all []*opening) (done *errgroup.Group,
	release func()) {
	t.Helper()
	first := w.opening("in front")
	release = w.hold(t)
	done = new(errgroup.Group)
	done.Go(func() error { first.begin(ctx, s); return first.err })
	w.awaitHeld(t)
	for _, o := range all {
		done.Go(func() error { o.begin(ctx, s); return nil })
	}
	wait.For(t, "the others queue", func() bool { return session.BeginsWaiting(s.Store) == len(all) })
	return done, release
}

// TestBeginsOfOneTransaction begins turns together. A turn of an unknown workspace does not affect
// the others, and a turn whose caller gives up while it waits is not stored.
func TestBeginsOfOneTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.Replica(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	one, rejected, two, late := w.opening("one"), w.opening("rejected"), w.opening("two"), w.opening("late")
	rejected.workspace = uuid.Must(uuid.NewV7())
	done, release := w.gatherBegins(ctx, t, s, []*opening{one, rejected, two})
	brief, giveUp := context.WithCancel(ctx)
	done.Go(func() error { late.begin(brief, s); return nil })
	wait.For(t, "the last one queues", func() bool { return session.BeginsWaiting(s.Store) == 4 })
	giveUp()
	release()
	if err := wait.Result(t, "the changes", done.Wait); err != nil {
		t.Fatal(err)
	}
	for _, o := range []*opening{one, two} {
		if o.err != nil || !w.isOpen(t, s, o) {
			t.Errorf("%q: %v", o.turn.Message.Content, o.err)
		}
		if rows := s.Rows(t, o.from); o.from.Session != o.session || len(rows) != 1 || rows[0].Kind != event.KindOpen {
			t.Errorf("the stream of %q begins with %v", o.turn.Message.Content, rows)
		}
	}
	if !pgerr.IsForeignKeyViolation(rejected.err) || w.isOpen(t, s, rejected) {
		t.Errorf("an unknown workspace: %v", rejected.err)
	}
	if !errors.Is(late.err, context.Canceled) || w.isOpen(t, s, late) {
		t.Errorf("a caller that gave up: %v", late.err)
	}
}

// TestLostAnswerToBegins loses the response to the commit of some first turns, or the commit
// itself. Every caller gets an unknown outcome, and each turn is stored once or not at all.
func TestLostAnswerToBegins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	control := w.Replica(t)
	proxy, dsn := dbtest.Proxy(t, w.DSN)
	direct, err := pgx.ParseConfig(w.DSN)
	if err != nil {
		t.Fatal(err)
	}
	s := sessiontest.NewReplica(dbtest.Pool(t, dsn+"&pool_max_conns=1"), eventlog.Options{Listen: direct}, session.Options{})
	var armed, received atomic.Bool // lose the commit of the next begins; lose only its response
	begins, commits := faultproxy.Executes("spoken AS ("), faultproxy.Executes("commit")
	conn, committing := 0, false
	proxy.OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
		begin, commit := begins(c), commits(c)
		switch {
		case !armed.Load():
			conn, committing = 0, false
		case conn == 0 && begin:
			conn = c.Conn
		case conn == c.Conn && commit:
			if committing = true; !received.Load() {
				return faultproxy.ResetAfter(0)
			}
		case conn == c.Conn && committing:
			return faultproxy.ResetAfter(0)
		}
		return faultproxy.Forward
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, committed := range []bool{true, false} {
		prepared := w.opening("prepared") // prepares the statement on the only connection
		if prepared.begin(ctx, s); prepared.err != nil {
			t.Fatal(prepared.err)
		}
		all := []*opening{w.opening("one"), w.opening("two"), w.opening("three")}
		done, release := w.gatherBegins(ctx, t, s, all)
		received.Store(committed)
		armed.Store(true)
		release()
		if err := wait.Result(t, "the changes", done.Wait); err != nil {
			t.Fatal(err)
		}
		armed.Store(false)
		for _, o := range all {
			if !errors.Is(o.err, session.ErrUnknownOutcome) {
				t.Errorf("%q: %v", o.turn.Message.Content, o.err)
			}
			wait.For(t, "PostgreSQL is done with it", func() bool { return w.isOpen(t, control, o) == committed })
		}
	}
}
