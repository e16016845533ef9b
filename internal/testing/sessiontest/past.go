package sessiontest

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
)

// Days creates the partitions of text deltas for some days of the past. Those younger than three
// days may be too young to be dropped.
func (w *World) Days(t testing.TB, ago ...int) {
	t.Helper()
	for _, n := range ago {
		w.Exec(t, fmt.Sprintf(`DO $$
			DECLARE day timestamptz := date_trunc('day', now(), 'UTC') - interval '%d days';
			BEGIN
				EXECUTE format('CREATE TABLE %%I PARTITION OF events_delta FOR VALUES FROM (%%L) TO (%%L)',
					'events_delta_' || to_char(day AT TIME ZONE 'UTC', 'YYYYMMDD'), day, day + interval '1 day');
			END $$`, n))
	}
}

// Exec runs a statement.
func (w *World) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := w.Pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// Count runs a query that returns one number.
func (w *World) Count(t testing.TB, sql string, args ...any) (n int) {
	t.Helper()
	if err := w.Pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Deltas counts the daily partitions that are older than the permanent ones.
func (w *World) Deltas(t testing.TB) int {
	t.Helper()
	return w.Count(t,
		`SELECT count(*) FROM events_partition_ends() WHERE delta AND ends <= date_trunc('day', now(), 'UTC') - interval '1 day'`)
}

// Past is a session whose turns ran days ago and ended just now.
type Past struct {
	From  eventlog.From
	Turns []uuid.UUID
	Want  []event.Event // the whole log
}

// Past creates a session with a turn for each day; a turn begins ten minutes before midnight and
// lasts twenty. Two of five rows are not text.
func (w *World) Past(t testing.TB, s *Replica, rows int, ago ...int) *Past {
	t.Helper()
	p := &Past{From: eventlog.From{Session: uuid.Must(uuid.NewV7())}}
	w.Exec(t, `INSERT INTO sessions (id, workspace_id, created_at) VALUES ($1, $2, now() - interval '300 days')`, p.From.Session,
		w.Workspace.ID)
	for i, n := range ago {
		turn := uuid.Must(uuid.NewV7())
		p.Turns = append(p.Turns, turn)
		w.Exec(t, `INSERT INTO turns (id, session_id, workspace_id, state, max_response_seconds, max_turns, created_at, finished_at)
			VALUES ($1, $2, $3, 'completed', 1, 1, date_trunc('day', now(), 'UTC') - make_interval(days => $4::int, mins => 10), now())`,
			turn, p.From.Session, w.Workspace.ID, n-1)
		w.Exec(t, `INSERT INTO events (session_id, turn_id, at, delta, ord, kind, data)
			SELECT $1, $2, date_trunc('day', now(), 'UTC') - make_interval(days => $3::int) + (i::float8 / $4::int * 20 - 10) * interval '1 minute',
				i % 5 > 1 AND i < $4::int, $5::int + i, CASE WHEN i = $4::int THEN 'done' WHEN i % 5 > 1 THEN 'text' ELSE 'tool_use' END,
				CASE WHEN i % 5 > 1 AND i < $4::int THEN format('{"v":1,"text":"%s "}', i) ELSE '{"v":1}' END::json
			FROM generate_series(1, $4::int) i ORDER BY i`, p.From.Session, turn, n-1, rows, i*rows)
		w.Exec(t, `UPDATE turns SET start_seq = e.low, end_seq = e.high
			FROM (SELECT min(seq) AS low, max(seq) AS high FROM events WHERE turn_id = $1) e WHERE id = $1`, turn)
	}
	w.Exec(t, `UPDATE sessions SET last_seq = e.seq, last_ord = e.ord, turn_id = $2
		FROM (SELECT max(seq) AS seq, max(ord) AS ord FROM events WHERE session_id = $1) e WHERE id = $1`, p.From.Session,
		p.Turns[len(p.Turns)-1])
	p.Want = s.Rows(t, p.From)
	if len(p.Want) != rows*len(ago) {
		t.Fatalf("%d rows, want %d", len(p.Want), rows*len(ago))
	}
	return p
}

// Expire moves the ends of turns out of the replay window.
func (w *World) Expire(t testing.TB, turns ...uuid.UUID) {
	t.Helper()
	w.Exec(t, `UPDATE turns SET finished_at = now() - interval '25 hours' WHERE id = ANY($1)`, turns)
}

// Retain removes expired rows.
func Retain(t testing.TB, s *Replica) session.Retained {
	t.Helper()
	done, err := s.ApplyRetention(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return done
}
