package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-server/parley/internal/pgerr"
)

// ErrRefused is returned for events that PostgreSQL never accepts, because of their size or form.
var ErrRefused = errors.New("PostgreSQL refuses the events")

// commitRows writes the rows and reports to their writers and readers. It returns the rows of
// sessions that other transactions have locked, for a retry.
//
// A batch that never reached PostgreSQL, or that PostgreSQL rolled back for a transient reason, is
// retried. A batch with an unknown fate is not: its rows may be stored. Its writers fail, and their
// turns are resumed from the log.
func (a *appender) commitRows(ctx context.Context, rows []row) (locked []row) {
	ctx, cancel := context.WithTimeout(ctx, a.log.opt.AppendTimeout)
	defer cancel()
	for delay := refusedPause; ; delay *= 2 {
		began := time.Now()
		busy, err := a.writeBatch(ctx, rows)
		if err == nil {
			a.countBatch(rows, len(busy), time.Since(began))
			return a.retriableRows(busy)
		}
		refused := pgerr.IsRefused(err)
		if refused && !canRetry(err, rows) {
			if len(newBatch(rows).leases) > 1 {
				return a.commitApart(ctx, rows)
			}
			err = fmt.Errorf("%w: %v", ErrRefused, err)
			refused = false
		}
		if _, never := errors.AsType[unsent](err); !refused && !never || ctx.Err() != nil {
			a.log.opt.Metrics.AppendFailures.Inc()
			a.log.opt.Log.WarnContext(ctx, "append to the log", "rows", len(rows), "err", err)
			failWriters(rows, fmt.Errorf("append to the log: %w", err))
			return nil
		}
		if pgerr.IsStalePlan(err) {
			a.log.pool.Reset() // every idle connection also has the stale plan
		}
		sleepContext(ctx, delay)
	}
}

// countBatch counts a batch, of which some rows were left out.
func (a *appender) countBatch(rows []row, left int, took time.Duration) {
	m, deltas := a.log.opt.Metrics, 0
	for _, r := range rows {
		if r.kind.IsDelta() {
			deltas += r.n
		}
	}
	m.AppendTime.Observe(took.Seconds())
	m.Appended.Add(float64(len(rows) - left))
	m.Deltas.Add(float64(deltas))
}

// commitApart writes the rows of each writer in a transaction of its own, so that a rejected one
// does not fail the others.
func (a *appender) commitApart(ctx context.Context, rows []row) (locked []row) {
	apart := make(map[*Writer][]row)
	var order []*Writer
	for _, r := range rows {
		if apart[r.w] == nil {
			order = append(order, r.w)
		}
		apart[r.w] = append(apart[r.w], r)
	}
	for _, w := range order {
		locked = append(locked, a.commitRows(ctx, apart[w])...)
	}
	return locked
}

// retriableRows returns the rows of locked sessions that may still be retried, and fails the
// others.
func (a *appender) retriableRows(rows []row) (again []row) {
	now := time.Now()
	for _, r := range rows {
		if r.until.IsZero() {
			r.until = now.Add(a.log.opt.AppendTimeout)
		}
		if now.After(r.until) {
			r.w.acknowledgeEvents(r.n, errLocked)
			continue
		}
		again = append(again, r)
	}
	return again
}

// errLocked is the *pgconn.PgError that PostgreSQL would have sent if the append had waited.
var errLocked = fmt.Errorf("append to the log: %w", &pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "55P03",
	Message: "the session stayed locked"})

// unsent wraps the failure of a batch of which PostgreSQL received nothing.
type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

// slowBytes is the size from which a batch that took PostgreSQL too long is too large.
const slowBytes = 1 << 20

// canRetry reports whether a batch that was rolled back can succeed on a retry.
func canRetry(err error, rows []row) bool {
	bytes := 0
	for _, r := range rows {
		bytes += len(r.data)
	}
	return pgerr.IsTransient(err) && (pgerr.Of(err) != pgerr.TimedOut || bytes < slowBytes)
}
