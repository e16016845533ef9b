package turn_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/turn"
)

// shiftClock replaces PostgreSQL's clock with one that the test can set, for every connection
// opened afterwards: all statements, River's too, call now() and clock_timestamp() by these names.
func shiftClock(t *testing.T, w *world) (set func(seconds int)) {
	t.Helper()
	sql := `CREATE SCHEMA shifted; CREATE TABLE shifted.clock AS SELECT interval '0' AS ahead;`
	for _, name := range []string{"now", "clock_timestamp", "statement_timestamp"} {
		sql += fmt.Sprintf(`CREATE FUNCTION shifted.%[1]s() RETURNS timestamptz LANGUAGE sql STABLE
			AS 'SELECT pg_catalog.%[1]s() + ahead FROM shifted.clock';`, name)
	}
	sql += `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = shifted, public, pg_catalog', current_database()); END $$`
	if _, err := w.pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
	return func(seconds int) {
		t.Helper()
		if _, err := w.pool.Exec(t.Context(), `UPDATE shifted.clock SET ahead = make_interval(secs => $1::int)`, seconds); err != nil {
			t.Fatal(err)
		}
	}
}

var skews = []int{-900, -30, -2, 30, 900}

// dueLater counts the jobs that PostgreSQL does not return yet.
func dueLater(t *testing.T, pool *pgxpool.Pool) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM river_job WHERE scheduled_at > shifted.clock_timestamp()`).Scan(
		&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// answers starts a turn and reads it to its end, which must come long before the skew has passed.
func answers(t *testing.T, w *world, r *replica) {
	t.Helper()
	began := time.Now()
	st := w.start(t, r, "book it")
	if n := dueLater(t, w.pool); n > 0 {
		t.Errorf("%d jobs are due later on PostgreSQL's clock", n)
	}
	evs := read(t, r, st)
	if got := failure(evs); got != "" || strings.Count(kinds(evs), "started") != 1 {
		t.Errorf("%s; failure %q", kinds(evs), got)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the turn took %v", took)
	}
}

// TestTurnsStartAtOnceUnderSkew makes PostgreSQL's clock differ permanently from the process's
// clock.
func TestTurnsStartAtOnceUnderSkew(t *testing.T) {
	t.Parallel()
	for _, skew := range skews {
		t.Run(fmt.Sprint(skew), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, booking())
			shiftClock(t, w)(skew)
			w.pool = dbtest.Pool(t, w.dsn)
			l := newLedger(t, w, false)
			l.leave <- struct{}{}
			answers(t, w, w.replica(t, nil))
		})
	}
}

// TestTurnsStartAtOnceAfterAStep sets PostgreSQL's clock while turns run.
func TestTurnsStartAtOnceAfterAStep(t *testing.T) {
	t.Parallel()
	for _, step := range skews {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, booking())
			set := shiftClock(t, w)
			w.pool = dbtest.Pool(t, w.dsn)
			l := newLedger(t, w, true)
			r := w.replica(t, func(c *turn.Config) { c.Workers = 0 })
			running := w.start(t, r, "book it") // has its job before the step
			set(step)
			for range 3 {
				l.leave <- struct{}{}
			}
			r = w.replica(t, nil)
			if got := failure(read(t, r, running)); got != "" {
				t.Errorf("the turn from before the step: %s", got)
			}
			answers(t, w, r)
		})
	}
}
