package session_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/sessiontest"
	"github.com/parley-server/parley/internal/testing/slow"
)

// TestATurnKeepsItsDeltas checks that a turn keeps its deltas until the end of the replay window,
// however long the turn waits.
func TestATurnKeepsItsDeltas(t *testing.T) {
	t.Parallel()
	slow.Test(t, "writes many rows")
	w := newWorld(t)
	s := w.Still(t)
	w.Days(t, 10, 9, 8, 7, 6, 5, 4, 3)
	early, p := w.Past(t, s, 20, 9), w.Past(t, s, 50, 7)
	w.Expire(t, early.Turns...)
	for _, state := range []session.State{session.Waiting, session.LinedUp, session.Queued, session.Running} {
		w.Exec(t, `UPDATE turns SET state = $2, finished_at = NULL WHERE id = $1`, p.Turns[0], state)
		done := sessiontest.Retain(t, s)
		if state == session.Waiting && len(done.Partitions) != 3 || state != session.Waiting && len(done.Partitions) != 0 {
			t.Errorf("%s: dropped %v", state, done.Partitions)
		}
	}
	w.Exec(t, `UPDATE turns SET state = 'completed', finished_at = now() - interval '23 hours' WHERE id = $1`, p.Turns[0])
	if done := sessiontest.Retain(t, s); len(done.Partitions) != 0 {
		t.Errorf("inside the window: dropped %v", done.Partitions)
	}
	if got, err := s.Stored(t.Context(), p.From); err != nil || len(got) != len(p.Want) {
		t.Errorf("%d of %d rows, %v", len(got), len(p.Want), err)
	}
	head, err := s.Head(t.Context(), w.Workspace.ID, p.From.Session)
	if err != nil || head.GoneSeq != 0 {
		t.Errorf("%+v, %v", head, err)
	}
	w.Expire(t, p.Turns...)
	if head, err = s.Head(t.Context(), w.Workspace.ID, p.From.Session); err != nil || head.GoneSeq != p.Want[len(p.Want)-1].Seq {
		t.Errorf("out of the window: %+v, %v", head, err)
	}
	if done := sessiontest.Retain(t, s); len(done.Partitions) != 5 {
		t.Errorf("out of the window: dropped %v", done.Partitions)
	}
}

// Sessions older than the audit retention are deleted with everything that belongs to them.
func TestTheAuditRetention(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var erased []uuid.UUID
	s := sessiontest.NewReplica(w.Pool, eventlog.Options{},
		session.Options{Erase: []session.Eraser{func(_ context.Context, _ pgx.Tx, workspace, id uuid.UUID) error {
			if workspace != w.Workspace.ID {
				t.Errorf("in the workspace %s", workspace)
			}
			erased = append(erased, id)
			return nil
		}}})
	run := w.Still(t)
	w.Exec(t, `CREATE TABLE events_record_202001 PARTITION OF events_record FOR VALUES FROM ('2020-01-01 00:00Z') TO ('2020-02-01 00:00Z')`)
	w.Exec(t, `CREATE TABLE events_record_202002 PARTITION OF events_record FOR VALUES FROM ('2020-02-01 00:00Z') TO ('2020-03-01 00:00Z')`)
	w.Exec(t, `CREATE TABLE events_record_elsewhere PARTITION OF events_record FOR VALUES FROM ('2019-01-01 00:00Z') TO ('2019-02-01 00:00Z')`)
	var ids []uuid.UUID
	for range 3 {
		lease, from := w.Begin(t, run, "hello")
		ids = append(ids, from.Session)
		if len(ids) < 3 {
			sessiontest.End(t, run, lease)
		}
		w.Exec(t, `INSERT INTO approvals (id, workspace_id, session_id, turn_id, kind, status, created_at, expires_at)
			VALUES (gen_random_uuid(), $1, $2, $3, 'approval', 'denied', now(), now())`, w.Workspace.ID, from.Session, lease.Turn)
	}
	old, young, running := ids[0], ids[1], ids[2]
	w.Exec(t, `UPDATE sessions SET updated_at = now() - interval '399 days' WHERE id = $1`, young)
	w.Exec(t, `UPDATE sessions SET updated_at = now() - interval '401 days' WHERE id IN ($1, $2)`, old, running)
	w.Exec(t, `UPDATE turns SET created_at = '2020-02-10 00:00Z' WHERE session_id = $1`, running)
	done := sessiontest.Retain(t, s)
	if !slices.Equal(done.Partitions, []string{"events_record_202001"}) || done.Sessions != 1 || !slices.Equal(erased, []uuid.UUID{old}) {
		t.Errorf("%+v, erased %v", done, erased)
	}
	for _, table := range []string{"sessions", "turns", "approvals"} {
		if n := w.Count(t, `SELECT count(*) FROM `+table); n != 2 {
			t.Errorf("%d %s are left", n, table)
		}
	}
	if n := w.Count(t, `SELECT count(*) FROM messages`); n != 4 {
		t.Errorf("%d messages are left", n)
	}
	if _, err := s.Head(t.Context(), w.Workspace.ID, old); fault.From(err) == nil {
		t.Errorf("the old session: %v", err)
	}
	w.Exec(t, `UPDATE turns SET state = 'completed', finished_at = now() - interval '2 days' WHERE session_id = $1`, running)
	if done := sessiontest.Retain(t, s); !slices.Equal(done.Partitions, []string{"events_record_202002"}) || done.Sessions != 1 {
		t.Errorf("after the turn has ended: %+v", done)
	}
}

// While one process removes expired rows, other processes remove nothing.
func TestOneProcessRetains(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.Still(t)
	w.Days(t, 3)
	conn, err := w.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_lock(20564, 1)`); err != nil {
		t.Fatal(err)
	}
	if done := sessiontest.Retain(t, s); done.Partitions != nil {
		t.Errorf("dropped %v", done.Partitions)
	}
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_unlock(20564, 1)`); err != nil {
		t.Fatal(err)
	}
	conn.Release()
	if done := sessiontest.Retain(t, s); len(done.Partitions) != 1 {
		t.Errorf("dropped %v", done.Partitions)
	}
	if done := sessiontest.Retain(t, s); done.Partitions != nil {
		t.Errorf("dropped %v again", done.Partitions)
	}
}
