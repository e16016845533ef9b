package turn_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/turn"
)

// underEachClock runs a test with each skew of PostgreSQL's clock: from the start, or, with step,
// from the moment the test calls set, which returns step. It does not use t.Parallel: these tests
// mostly wait.
func underEachClock(t *testing.T, test func(t *testing.T, w *world, set func() (stepped bool))) {
	t.Parallel()
	var tests errgroup.Group
	tests.SetLimit(5)
	for _, skew := range skews {
		for _, step := range []bool{false, true} {
			tests.Go(func() error {
				t.Run(fmt.Sprintf("%d/step=%t", skew, step), func(t *testing.T) { withClock(t, skew, step, test) })
				return nil
			})
		}
	}
	_ = wait.Result(t, "the tests", tests.Wait)
}

func withClock(t *testing.T, skew int, step bool, test func(t *testing.T, w *world, set func() (stepped bool))) {
	w := newWorld(t, booking())
	shift := shiftClock(t, w)
	if _, err := w.pool.Exec(t.Context(), `CREATE SEQUENCE shifted.looks; CREATE FUNCTION shifted.nodes_alive() RETURNS SETOF int LANGUAGE sql
		AS 'SELECT n FROM public.nodes_alive() n, nextval(''shifted.looks'')'`); err != nil {
		t.Fatal(err)
	}
	w.pool = dbtest.Pool(t, w.dsn) // the other pool's connections have the old clock
	if step {
		test(t, w, func() bool { shift(skew); return true })
		return
	}
	shift(skew)
	test(t, w, func() bool { return false })
}

// await polls a condition of rows until it is true.
func (w *world) await(t *testing.T, what, sql string, args ...any) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; <-time.After(10 * time.Millisecond) {
		var holds bool
		if err := w.pool.QueryRow(t.Context(), `SELECT coalesce((`+sql+`), false)`, args...).Scan(&holds); err != nil {
			t.Fatal(err)
		}
		if holds {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// reaped waits until the reapers have checked the running turns several times. Each check asks
// which nodes are alive.
func (w *world) reaped(t *testing.T) {
	t.Helper()
	w.await(t, "the reaper looks at the running turns", `SELECT last_value > $1 FROM shifted.looks`, w.looks(t)+8)
}

func (w *world) looks(t *testing.T) (n int) {
	t.Helper()
	if err := w.pool.QueryRow(t.Context(), `SELECT last_value FROM shifted.looks`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestClockDoesNotTakeATurnFromItsWorker changes the clock while a tool runs that must not run
// twice.
func TestClockDoesNotTakeATurnFromItsWorker(t *testing.T) {
	underEachClock(t, func(t *testing.T, w *world, set func() (stepped bool)) {
		l := newLedger(t, w, false)
		r := w.replica(t, func(c *turn.Config) { c.Lease = 3 * time.Second })
		st := w.start(t, r, "book it")
		wait.Receive(t, "a call of the tool", l.entered)
		set()
		w.reaped(t)
		w.await(t, "the lease is renewed", `SELECT lease_until - shifted.clock_timestamp() BETWEEN interval '0' AND interval '3 seconds'
			AND shifted.clock_timestamp() - started_at < interval '30 seconds' FROM turns WHERE id = $1`, st.Turn)
		w.reaped(t)
		l.leave <- struct{}{}
		evs := read(t, r, st)
		if got, want := kinds(evs), "open started text reply tool_use tool_result text reply usage done"; got != want {
			t.Errorf("events: %s\nwant:   %s", got, want)
		}
		if n := l.entries(t); n != 1 {
			t.Errorf("the tool ran %d times", n)
		}
	})
}

// TestClockDoesNotKeepATurnForAFrozenWorker gives a turn to a live node that does not renew its
// lease.
func TestClockDoesNotKeepATurnForAFrozenWorker(t *testing.T) {
	underEachClock(t, func(t *testing.T, w *world, set func() (stepped bool)) {
		l := newLedger(t, w, true)
		r := w.replica(t, func(c *turn.Config) { c.Lease = 2 * time.Second })
		frozen := w.replica(t, func(c *turn.Config) { c.Workers = 0 })
		st := w.start(t, r, "book it")
		wait.Receive(t, "a call of the tool", l.entered)
		if _, err := w.pool.Exec(t.Context(), `UPDATE turns SET lease_until = shifted.now() + interval '2 seconds', node = $2 WHERE id = $1`,
			st.Turn, frozen.events.Node()); err != nil {
			t.Fatal(err)
		}
		w.reaped(t) // before the step
		set()
		for range 3 { // also for the abandoned call
			l.leave <- struct{}{}
		}
		if got := failure(read(t, r, st)); got != "" {
			t.Errorf("the turn failed: %s", got)
		}
	})
}

// TestApprovalsEndByPostgreSQLsClock leaves an approval unanswered. The approval ends at an instant
// of PostgreSQL's clock, which callers know: it expires when the clock passes that instant,
// gradually or by a step, and can be answered before.
func TestApprovalsEndByPostgreSQLsClock(t *testing.T) {
	underEachClock(t, func(t *testing.T, w *world, set func() (stepped bool)) {
		l := newLedger(t, w, true)
		l.leave <- struct{}{}
		r := w.replica(t, asking(time.Minute))
		st := w.start(t, r, "book it")
		asked := question(t, r, st)
		set()
		var over bool
		if err := w.pool.QueryRow(t.Context(), `SELECT expires_at <= shifted.clock_timestamp() FROM approvals WHERE id = $1`,
			asked).Scan(&over); err != nil {
			t.Fatal(err)
		}
		want, runs := "expired", 0
		if !over {
			want, runs = "allowed", 1
			if _, err := r.turns.Decide(t.Context(), w.workspace.ID, turn.Answer{Approval: asked, Outcome: event.Allowed, Key: "k"}); err != nil {
				t.Errorf("the approval is open, but the answer failed: %v", err)
			}
		}
		if got := failure(read(t, r, st)); got != "" {
			t.Errorf("the turn failed: %s", got)
		}
		if got := w.status(t, r, asked); got != want || l.entries(t) != runs {
			t.Errorf("the approval is %s and the tool ran %d times, want %s and %d", got, l.entries(t), want, runs)
		}
	})
}

func (w *world) status(t *testing.T, r *replica, approval uuid.UUID) string {
	t.Helper()
	a, err := r.sessions.Approval(t.Context(), w.workspace.ID, approval)
	if err != nil {
		t.Fatal(err)
	}
	return a.Status
}

// TestUnansweredApprovalsExpireUnderSkew lets the window of an approval pass.
func TestUnansweredApprovalsExpireUnderSkew(t *testing.T) {
	underEachClock(t, func(t *testing.T, w *world, set func() (stepped bool)) {
		const window = 2 * time.Second
		newLedger(t, w, true)
		set() // a step before the question is equal to a skew
		r := w.replica(t, asking(window))
		began := time.Now()
		st := w.start(t, r, "book it")
		asked := question(t, r, st)
		if got := failure(read(t, r, st)); got != "" {
			t.Errorf("the turn failed: %s", got)
		}
		if got := w.status(t, r, asked); got != "expired" {
			t.Errorf("the approval is %s", got)
		}
		if took := time.Since(began); took < window {
			t.Errorf("the approval expired after %v, its window is %v", took, window)
		}
	})
}

// TestCallbacksAreRepeatedUnderSkew makes the first attempt fail and changes the clock before the
// second, or, on a busy machine, during it: then the second counts as lost, and is made again.
func TestCallbacksAreRepeatedUnderSkew(t *testing.T) {
	underEachClock(t, func(t *testing.T, w *world, set func() (stepped bool)) {
		newLedger(t, w, true).leave <- struct{}{}
		h := newHook(t, w)
		r := h.replica(t, nil)
		id, _ := h.report(t, r, false)
		h.reply <- 500
		wait.Receive(t, "a request at the hook", h.got)
		h.await(t, id, "pending", 1)
		stepped := set()
		h.reply <- 200
		h.reply <- 200
		h.await(t, id, "delivered", 2)
		if n := h.calls.Load(); n != 2 && (n != 3 || !stepped) {
			t.Errorf("%d attempts arrived, want 2", n)
		}
	})
}

// TestStrandedTurnsAreFoundUnderSkew removes the job of a queued turn.
func TestStrandedTurnsAreFoundUnderSkew(t *testing.T) {
	underEachClock(t, func(t *testing.T, w *world, set func() (stepped bool)) {
		l := newLedger(t, w, true)
		l.leave <- struct{}{}
		idle := w.replica(t, func(c *turn.Config) { c.Workers = 0 })
		st := w.start(t, idle, "book it")
		idle.stop()
		if _, err := w.pool.Exec(t.Context(), `DELETE FROM river_job`); err != nil {
			t.Fatal(err)
		}
		set()
		if got := failure(read(t, w.replica(t, nil), st)); got != "" {
			t.Errorf("the turn failed: %s", got)
		}
	})
}
