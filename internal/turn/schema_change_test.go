package turn_test

import (
	"sync"
	"testing"

	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/turn"
)

// widen lists changes that an administrator or a later release may make. After each change
// PostgreSQL rejects the statements prepared before it, with 0A000.
var widen = []string{
	`ALTER TABLE turns ALTER COLUMN max_turns TYPE bigint`,
	`ALTER TABLE river_job ALTER COLUMN attempt TYPE integer`,
}

// TestTurnsOutliveAChangeOfTheSchema changes tables while turns run whose statements are prepared
// on every connection of the pool. Each turn ends as usual, and new turns are accepted.
func TestTurnsOutliveAChangeOfTheSchema(t *testing.T) {
	t.Parallel()
	const turns = 12
	w := newWorld(t, booking())
	l := newLedger(t, w, false)
	r := w.replica(t, nil)
	for range turns {
		l.leave <- struct{}{}
	}
	round := func() (running [turns]turn.Started) {
		var all sync.WaitGroup
		for i := range turns {
			all.Go(func() { running[i] = w.start(t, r, "book it") })
		}
		wait.Until(t, "the starts of the turns", all.Wait)
		return running
	}
	for _, st := range round() { // prepares the statements of a turn
		read(t, r, st)
		wait.Receive(t, "a call of the tool", l.entered)
	}
	running := round()
	for range turns {
		wait.Receive(t, "a call of the tool", l.entered)
	}
	for _, sql := range widen {
		if _, err := w.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for range turns {
		l.leave <- struct{}{}
	}
	for _, st := range running {
		if got, want := kinds(read(t, r, st)), "open started text reply tool_use tool_result text reply usage done"; got != want {
			t.Errorf("a turn that ran: %s", got)
		}
	}
	for range 2 * turns { // one request on each connection is the first
		if _, err := r.sessions.Head(t.Context(), w.workspace.ID, running[0].Session); err != nil {
			t.Errorf("read a session: %v", err)
		}
	}
	for range turns {
		l.leave <- struct{}{}
	}
	for _, st := range round() {
		if got := failure(read(t, r, st)); got != "" {
			t.Errorf("a turn after the change: %s", got)
		}
	}
}
