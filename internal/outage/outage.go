// Package outage keeps the log readable while an operation that is repeated every second fails, as
// all database operations do during an outage.
package outage

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/pgerr"
)

// remindEvery is the pause between two log lines during an outage.
const remindEvery = time.Minute

// Log logs the outages of one repeated operation: a line when the first attempt fails, at most one
// a minute while attempts fail, and one when an attempt succeeds. The end is a line at DEBUG if the
// database was lost: its own lines say so, once for all operations. It is safe for concurrent use.
type Log struct {
	log       *slog.Logger
	operation string

	mu       sync.Mutex
	began    time.Time // zero: the operation works
	logged   time.Time
	failures int  // since began
	lost     bool // nothing but the loss of the database was logged since began
}

// New returns a Log. The operation is a phrase such as "renew leases".
func New(log *slog.Logger, operation string) *Log { return &Log{log: log, operation: operation} }

// Note records the result of an attempt, with keys and values for the line. A failure after the end
// of ctx is not an outage: the caller has stopped.
func (l *Log) Note(ctx context.Context, err error, args ...any) {
	if err != nil && ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil && l.began.IsZero():
		return
	case err == nil:
		level := slog.LevelInfo
		if l.lost {
			level = slog.LevelDebug
		}
		l.log.Log(ctx, level, l.operation+": works again", "after", now.Sub(l.began).Round(time.Millisecond), "failures", l.failures)
		l.began, l.failures = time.Time{}, 0
		return
	}
	l.failures++
	switch {
	case l.began.IsZero():
		l.began, l.logged, l.lost = now, now, pgerr.IsLost(err)
		l.log.WarnContext(ctx, l.operation+": failed", append(args, "err", err)...)
	case now.Sub(l.logged) >= remindEvery:
		l.logged, l.lost = now, l.lost && pgerr.IsLost(err)
		args = append(args, "since", now.Sub(l.began).Round(time.Second), "failures", l.failures, "err", err)
		l.log.WarnContext(ctx, l.operation+": still failing", args...)
	}
}
