package turn_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model/modeltest"
	"github.com/parley-server/parley/internal/turn"
)

// TestATurnWithoutTimeLeftEnds takes up a turn whose earlier attempts used its time up,
// as one does whose worker died at its last moment.
func TestATurnWithoutTimeLeftEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("too late"))
	idle := w.replica(t, func(c *turn.Config) { c.Workers = 0 })
	st := w.start(t, idle, "hello")
	if _, err := w.pool.Exec(t.Context(), `UPDATE turns SET active_seconds = max_response_seconds`); err != nil {
		t.Fatal(err)
	}
	evs := read(t, w.replica(t, nil), st)
	if got := kinds(evs); got != "open started error done" || failure(evs) != event.TimedOut {
		t.Errorf("%s, %s", got, failure(evs))
	}
}

// TestInterruptStopsTheWorker sends a message into a session whose turn waits for a
// tool, on the replica that runs it and on another. No lease is renewed meanwhile.
func TestInterruptStopsTheWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, booking())
	l := newLedger(t, w, false)
	slow := func(c *turn.Config) { c.Lease = time.Hour }
	here, there := w.replica(t, slow), w.replica(t, func(c *turn.Config) { slow(c); c.Workers = 0 })
	for _, r := range []*replica{here, there} {
		st := w.start(t, r, "book it")
		<-l.entered
		req := turn.Request{Workspace: w.workspace, Session: st.Session, Command: "book that", Multitask: turn.Interrupt}
		next, err := r.turns.Start(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		w.halts(t, st.Turn)
		<-l.entered
		l.leave <- struct{}{}
		if got := text(read(t, r, next)); got != "Let me see. \n\nAll done." {
			t.Errorf("the next answer is %q", got)
		}
	}
}

// halts waits until the worker of a cancelled turn has confirmed its stop.
func (w *world) halts(t *testing.T, id uuid.UUID) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for halted := false; !halted; {
		if err := w.pool.QueryRow(t.Context(), `SELECT halted_at IS NOT NULL FROM turns WHERE id = $1`, id).Scan(&halted); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("the worker goes on")
		}
	}
}
