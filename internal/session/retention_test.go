package session_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

// still is a replica that does nothing by itself: it drops when it is told to.
func (w *world) still(t testing.TB) *session.Store {
	t.Helper()
	return session.New(dbtest.Pool(t, w.dsn), session.Options{})
}

// days makes the partitions of text deltas for some days of the past. The younger ones than three
// days may be too young to be dropped.
func (w *world) days(t testing.TB, ago ...int) {
	t.Helper()
	for _, n := range ago {
		w.exec(t, fmt.Sprintf(`DO $$
			DECLARE day timestamptz := date_trunc('day', now(), 'UTC') - interval '%d days';
			BEGIN
				EXECUTE format('CREATE TABLE %%I PARTITION OF events_delta FOR VALUES FROM (%%L) TO (%%L)',
					'events_delta_' || to_char(day AT TIME ZONE 'UTC', 'YYYYMMDD'), day, day + interval '1 day');
			END $$`, n))
	}
}

func (w *world) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := w.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func (w *world) count(t testing.TB, sql string, args ...any) (n int) {
	t.Helper()
	if err := w.pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// deltas counts the daily partitions that are older than those that are always there.
func (w *world) deltas(t testing.TB) int {
	t.Helper()
	return w.count(t, `SELECT count(*) FROM events_partition_ends() WHERE delta AND ends <= date_trunc('day', now(), 'UTC') - interval '1 day'`)
}

// past is a session whose turns ran days ago and ended just now.
type past struct {
	from  session.From
	turns []uuid.UUID
	want  []event.Event // the whole log
}

// past makes a session with a turn for each day; a turn begins ten minutes before
// midnight and goes on for twenty. Two of five rows are no text.
func (w *world) past(t testing.TB, s *session.Store, rows int, ago ...int) *past {
	t.Helper()
	p := &past{from: session.From{Session: uuid.Must(uuid.NewV7())}}
	w.exec(t, `INSERT INTO sessions (id, workspace_id, created_at) VALUES ($1, $2, now() - interval '300 days')`, p.from.Session, w.workspace.ID)
	for i, n := range ago {
		turn := uuid.Must(uuid.NewV7())
		p.turns = append(p.turns, turn)
		w.exec(t, `INSERT INTO turns (id, session_id, workspace_id, state, max_response_seconds, max_turns, created_at, finished_at)
			VALUES ($1, $2, $3, 'completed', 1, 1, date_trunc('day', now(), 'UTC') - make_interval(days => $4::int, mins => 10), now())`,
			turn, p.from.Session, w.workspace.ID, n-1)
		w.exec(t, `INSERT INTO events (session_id, turn_id, at, delta, ord, kind, data)
			SELECT $1, $2, date_trunc('day', now(), 'UTC') - make_interval(days => $3::int) + (i::float8 / $4::int * 20 - 10) * interval '1 minute',
				i % 5 > 1 AND i < $4::int, $5::int + i, CASE WHEN i = $4::int THEN 'done' WHEN i % 5 > 1 THEN 'text' ELSE 'tool_use' END,
				CASE WHEN i % 5 > 1 AND i < $4::int THEN format('{"v":1,"text":"%s "}', i) ELSE '{"v":1}' END::json
			FROM generate_series(1, $4::int) i ORDER BY i`, p.from.Session, turn, n-1, rows, i*rows)
		w.exec(t, `UPDATE turns SET start_seq = e.low, end_seq = e.high
			FROM (SELECT min(seq) AS low, max(seq) AS high FROM events WHERE turn_id = $1) e WHERE id = $1`, turn)
	}
	w.exec(t, `UPDATE sessions SET last_seq = e.seq, last_ord = e.ord, turn_id = $2
		FROM (SELECT max(seq) AS seq, max(ord) AS ord FROM events WHERE session_id = $1) e WHERE id = $1`, p.from.Session, p.turns[len(p.turns)-1])
	p.want = w.rows(t, s, p.from)
	if len(p.want) != rows*len(ago) {
		t.Fatalf("%d rows, want %d", len(p.want), rows*len(ago))
	}
	return p
}

// expire puts the end of a turn out of the replay window.
func (w *world) expire(t testing.TB, turns ...uuid.UUID) {
	t.Helper()
	w.exec(t, `UPDATE turns SET finished_at = now() - interval '25 hours' WHERE id = ANY($1)`, turns)
}

func retain(t testing.TB, s *session.Store) session.Retained {
	t.Helper()
	done, err := s.Retain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// after reads what is there after a cursor.
func after(ctx context.Context, s *session.Store, from session.From) (all []event.Event, err error) {
	for evs, err := range s.After(ctx, from) {
		if err != nil {
			return all, err
		}
		all = append(all, evs...)
	}
	return all, nil
}

// until follows a session up to an event.
func until(ctx context.Context, s *session.Store, from session.From, last int64) (all []event.Event, err error) {
	if from.Seq >= last {
		return nil, nil
	}
	for evs, err := range s.Follow(ctx, from) {
		if err != nil {
			return all, err
		}
		all = append(all, evs...)
		if all[len(all)-1].Seq >= last {
			break
		}
	}
	return all, nil
}

func seqs(evs []event.Event) []int64 {
	list := make([]int64, len(evs))
	for i, ev := range evs {
		list[i] = ev.Seq
	}
	return list
}

// TestATurnKeepsItsDeltas from its beginning to the end of the replay window, however
// long it waits in between.
func TestATurnKeepsItsDeltas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.still(t)
	w.days(t, 10, 9, 8, 7, 6, 5, 4, 3)
	early, p := w.past(t, s, 20, 9), w.past(t, s, 50, 7)
	w.expire(t, early.turns...)
	for _, state := range []session.State{session.Waiting, session.LinedUp, session.Queued, session.Running} {
		w.exec(t, `UPDATE turns SET state = $2, finished_at = NULL WHERE id = $1`, p.turns[0], state)
		done := retain(t, s)
		if state == session.Waiting && len(done.Partitions) != 3 || state != session.Waiting && len(done.Partitions) != 0 {
			t.Errorf("%s: dropped %v", state, done.Partitions)
		}
	}
	w.exec(t, `UPDATE turns SET state = 'completed', finished_at = now() - interval '23 hours' WHERE id = $1`, p.turns[0])
	if done := retain(t, s); len(done.Partitions) != 0 {
		t.Errorf("inside the window: dropped %v", done.Partitions)
	}
	if got, err := after(t.Context(), s, p.from); err != nil || len(got) != len(p.want) {
		t.Errorf("%d of %d rows, %v", len(got), len(p.want), err)
	}
	head, err := s.Head(t.Context(), w.workspace.ID, p.from.Session)
	if err != nil || head.GoneSeq != 0 {
		t.Errorf("%+v, %v", head, err)
	}
	w.expire(t, p.turns...)
	if head, err = s.Head(t.Context(), w.workspace.ID, p.from.Session); err != nil || head.GoneSeq != p.want[len(p.want)-1].Seq {
		t.Errorf("out of the window: %+v, %v", head, err)
	}
	if done := retain(t, s); len(done.Partitions) != 5 {
		t.Errorf("out of the window: dropped %v", done.Partitions)
	}
}

// A drop that waits for somebody's long look at the log gives up and lets the writers
// behind it pass.
func TestDroppingLetsTrafficPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.still(t)
	w.days(t, 3)
	lease, from := w.begin(t, s, "hello")
	auditor, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer auditor.Rollback(context.WithoutCancel(t.Context()))
	if _, err := auditor.Exec(t.Context(), `SELECT FROM events LIMIT 1`); err != nil {
		t.Fatal(err)
	}
	tried := make(chan error, 1)
	go func() {
		_, err := s.Retain(t.Context())
		tried <- err
	}()
	written := 0
	for done := false; !done; written++ {
		err := s.Update(t.Context(), from.Session, func(tx *session.Tx) error {
			_, err := tx.Append(t.Context(), lease.Turn, event.ToolUse{Tool: "t"})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-tried:
			if done = true; err == nil || !strings.Contains(err.Error(), "55P03") {
				t.Errorf("a drop under a lock: %v", err)
			}
		default:
		}
	}
	if err := auditor.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.deltas(t) != 1 || len(w.rows(t, s, from)) < written {
		t.Errorf("%d partitions, %d of %d rows", w.deltas(t), len(w.rows(t, s, from)), written)
	}
	if done := retain(t, s); len(done.Partitions) != 1 {
		t.Errorf("dropped %v", done.Partitions)
	}
}

// What is older than the audit retention goes with all that belongs to it.
func TestTheAuditRetention(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var erased []uuid.UUID
	s := session.New(w.pool, session.Options{Erase: []session.Eraser{func(_ context.Context, _ pgx.Tx, workspace, id uuid.UUID) error {
		if workspace != w.workspace.ID {
			t.Errorf("in the workspace %s", workspace)
		}
		erased = append(erased, id)
		return nil
	}}})
	run := w.still(t)
	w.exec(t, `CREATE TABLE events_record_202001 PARTITION OF events_record FOR VALUES FROM ('2020-01-01 00:00Z') TO ('2020-02-01 00:00Z')`)
	w.exec(t, `CREATE TABLE events_record_202002 PARTITION OF events_record FOR VALUES FROM ('2020-02-01 00:00Z') TO ('2020-03-01 00:00Z')`)
	w.exec(t, `CREATE TABLE events_record_elsewhere PARTITION OF events_record FOR VALUES FROM ('2019-01-01 00:00Z') TO ('2019-02-01 00:00Z')`)
	var ids []uuid.UUID
	for range 3 {
		lease, from := w.begin(t, run, "hello")
		ids = append(ids, from.Session)
		if len(ids) < 3 {
			w.end(t, run, lease)
		}
		w.exec(t, `INSERT INTO approvals (id, workspace_id, session_id, turn_id, kind, status, created_at, expires_at)
			VALUES (gen_random_uuid(), $1, $2, $3, 'approval', 'denied', now(), now())`, w.workspace.ID, from.Session, lease.Turn)
	}
	old, young, running := ids[0], ids[1], ids[2]
	w.exec(t, `UPDATE sessions SET updated_at = now() - interval '399 days' WHERE id = $1`, young)
	w.exec(t, `UPDATE sessions SET updated_at = now() - interval '401 days' WHERE id IN ($1, $2)`, old, running)
	w.exec(t, `UPDATE turns SET created_at = '2020-02-10 00:00Z' WHERE session_id = $1`, running)
	done := retain(t, s)
	if !slices.Equal(done.Partitions, []string{"events_record_202001"}) || done.Sessions != 1 || !slices.Equal(erased, []uuid.UUID{old}) {
		t.Errorf("%+v, erased %v", done, erased)
	}
	for _, table := range []string{"sessions", "turns", "approvals"} {
		if n := w.count(t, `SELECT count(*) FROM `+table); n != 2 {
			t.Errorf("%d %s are left", n, table)
		}
	}
	if n := w.count(t, `SELECT count(*) FROM messages`); n != 4 {
		t.Errorf("%d messages are left", n)
	}
	if _, err := s.Head(t.Context(), w.workspace.ID, old); fault.From(err) == nil {
		t.Errorf("the old session: %v", err)
	}
	w.exec(t, `UPDATE turns SET state = 'completed', finished_at = now() - interval '2 days' WHERE session_id = $1`, running)
	if done := retain(t, s); !slices.Equal(done.Partitions, []string{"events_record_202002"}) || done.Sessions != 1 {
		t.Errorf("after the turn has ended: %+v", done)
	}
}

// While one process removes what is past its time, others do nothing.
func TestOneProcessRetains(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.still(t)
	w.days(t, 3)
	conn, err := w.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_lock(20564, 1)`); err != nil {
		t.Fatal(err)
	}
	if done := retain(t, s); done.Partitions != nil {
		t.Errorf("dropped %v", done.Partitions)
	}
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_unlock(20564, 1)`); err != nil {
		t.Fatal(err)
	}
	conn.Release()
	if done := retain(t, s); len(done.Partitions) != 1 {
		t.Errorf("dropped %v", done.Partitions)
	}
	if done := retain(t, s); done.Partitions != nil {
		t.Errorf("dropped %v again", done.Partitions)
	}
}
