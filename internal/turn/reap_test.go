package turn_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/dbtest/faultproxy"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/turn"
)

// dead is a node that does not belong to any process.
const dead = 4711

// TestLockedSessionDoesNotHoldUpTheReaper leaves five turns of a dead node behind and locks the
// session that the reaper reads first. The reaper takes over the other turns meanwhile.
func TestLockedSessionDoesNotHoldUpTheReaper(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("hi"))
	idle := w.replica(t, func(c *turn.Config) { c.Workers = 0 })
	var all []turn.Started
	for range 5 {
		all = append(all, w.start(t, idle, "hello"))
	}
	idle.stop()
	lock, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback(t.Context()) }()
	if _, err := lock.Exec(t.Context(), `SELECT FROM sessions WHERE id = $1 FOR UPDATE`, all[0].Session); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pool.Exec(t.Context(),
		`UPDATE turns SET state = 'running', node = $1, started_at = now(), lease_until = now() + interval '1 hour'`, dead); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r := w.replica(t, nil)
	for _, st := range all[1:] {
		if got := text(read(t, r, st)); got != "hi" {
			t.Errorf("text %q", got)
		}
	}
	t.Logf("the other turns ended after %s", time.Since(began))
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := text(read(t, r, all[0])); got != "hi" {
		t.Errorf("the locked session's text %q", got)
	}
}

// TestTurnThatRunsTooLongIsTakenFromItsWorker has a live node that renews its lease but does not
// end its turn.
func TestTurnThatRunsTooLongIsTakenFromItsWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("hi"))
	idle := w.replica(t, func(c *turn.Config) { c.Workers = 0 })
	st := w.start(t, idle, "hello")
	if _, err := w.pool.Exec(t.Context(), `UPDATE turns SET state = 'running', node = $1, lease_until = now() + interval '1 hour',
		started_at = now() - make_interval(secs => max_response_seconds + 31)`, idle.events.Node()); err != nil {
		t.Fatal(err)
	}
	if got := kinds(read(t, w.replica(t, func(c *turn.Config) { c.Lease = time.Second }), st)); got != "open started error done" {
		t.Errorf("events %s", got)
	}
}

// TestLostAnswerToAFetchIsFound drops the response to the fetch of a turn's job. River considers
// the job running on a live node, but no worker has it.
func TestLostAnswerToAFetchIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("hi"))
	proxy, dsn := dbtest.Proxy(t, w.dsn)
	caller := w.replica(t, func(c *turn.Config) { c.Workers = 0 })
	through := *w
	through.dsn = dsn
	worker := through.replica(t, nil)
	if got := text(read(t, caller, w.start(t, caller, "warm up"))); got != "hi" {
		t.Fatalf("text %q", got)
	}
	for stored := false; !stored; { // the next job through the proxy is a fetched one
		if err := w.pool.QueryRow(t.Context(), `SELECT bool_and(state = 'completed') FROM river_job`).Scan(&stored); err != nil {
			t.Fatal(err)
		}
	}
	lost, conn := make(chan struct{}), 0
	proxy.OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
		if conn == 0 && c.Direction == faultproxy.ToClient && bytes.Contains(c.Data, []byte(`"turn_id"`)) {
			conn = c.Conn
			close(lost)
		}
		if c.Conn == conn {
			return faultproxy.FreezeConn
		}
		return faultproxy.Forward
	})
	st := w.start(t, caller, "hello")
	began := time.Now()
	select {
	case <-lost:
	case <-time.After(20 * time.Second):
		t.Fatal("the job was never fetched")
	}
	if got := text(read(t, caller, st)); got != "hi" {
		t.Errorf("text %q", got)
	}
	t.Logf("answered %s after the lost fetch", time.Since(began))
	proxy.Cut() // the pools of tests wait for half-open connections
	if err := worker.turns.Working(); err != nil {
		t.Errorf("after the fault: %v", err)
	}
}
