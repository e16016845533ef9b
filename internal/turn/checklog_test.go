package turn_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/metrics"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/turn"
)

// TestBrokenLogStopsTheTurn breaks the log of an interrupted turn. The next attempt fails the turn,
// and only that one.
func TestBrokenLogStopsTheTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("fine"))
	idle := w.replica(t, func(c *turn.Config) { c.Workers = 0 })
	const insert = `INSERT INTO events (session_id, turn_id, at, delta, ord, kind, data)
		SELECT session_id, turn_id, clock_timestamp(), false, `
	var broken []turn.Started
	for _, sql := range []string{
		insert + `max(ord) + 1, 'done', '{}' FROM events WHERE session_id = $1 GROUP BY 1, 2`,
		insert + `1, 'tool_use', '{}' FROM events WHERE session_id = $1 GROUP BY 1, 2`,
		insert + `max(ord) + 1, 'started', '{"epoch":100}' FROM events WHERE session_id = $1 GROUP BY 1, 2`,
	} {
		st := w.start(t, idle, "hello")
		dbtest.Tamper(t, w.pool, sql, st.Session)
		dbtest.Tamper(t, w.pool, `UPDATE sessions SET last_seq = e.seq, last_ord = e.ord
			FROM (SELECT max(seq) AS seq, max(ord) AS ord FROM events WHERE session_id = $1) e WHERE id = $1`, st.Session)
		dbtest.Tamper(t, w.pool, `UPDATE turns SET epoch = 1 WHERE id = $1`, st.Turn) // a second attempt reads the log
		broken = append(broken, st)
	}
	whole := w.start(t, idle, "hello")
	m := metrics.New()
	r := w.replica(t, func(c *turn.Config) { c.Metrics = m })
	if evs := read(t, r, whole); !strings.HasSuffix(kinds(evs), "done") || text(evs) != "fine" {
		t.Errorf("%s", kinds(evs))
	}
	for _, st := range broken {
		w.await(t, "the turn has failed", `SELECT state = 'failed' AND error = $2 FROM turns WHERE id = $1`, st.Turn, string(event.InternalError))
	}
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if n := f.GetMetric(); f.GetName() == "parley_broken_logs_total" && n[0].GetCounter().GetValue() != float64(len(broken)) {
			t.Errorf("%v broken logs were counted", n)
		}
	}
}
