package eventlog

import (
	"context"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/event"
)

// Writer appends one turn's events under its lease. It belongs to one goroutine.
//
// The stored events of a Writer are a prefix of its events, without a hole or a repetition. After
// its first error it writes nothing more.
type Writer struct {
	lease  Lease
	a      *appender
	failed func(error) // called once, with the first error

	round, place int // round and place of the newest row in the queue; guarded by a.mu

	mu      sync.Mutex
	unacked int
	since   time.Time // when the oldest of them began to wait, or the last row before them was committed
	err     error
	acked   chan struct{}
}

// Writer opens the log for the holder of a lease.
func (l *Log) Writer(lease Lease) *Writer {
	a := l.appenders[int(lease.Session[15])%len(l.appenders)]
	return &Writer{lease: lease, a: a, round: -1, acked: make(chan struct{}, 1)}
}

// OnFailure calls f with the first error as soon as it is known: Append returns before the commit
// of text. It must be set before the first Append.
func (w *Writer) OnFailure(f func(error)) { w.failed = f }

// Append writes events in order. Text returns at once and is committed with the next commit; every
// other kind returns after its commit. ErrLeaseLost means that nothing was written and nothing ever
// will be.
func (w *Writer) Append(ctx context.Context, bodies ...event.Body) error {
	if err := w.Queue(ctx, bodies...); err != nil {
		return err
	}
	for _, b := range bodies {
		if !b.Kind().IsDelta() {
			return w.Flush(ctx)
		}
	}
	return nil
}

// Queue is Append that returns at once for every kind.
func (w *Writer) Queue(ctx context.Context, bodies ...event.Body) error {
	rows := make([]row, len(bodies))
	for i, b := range bodies {
		data, err := event.Encode(b)
		if err != nil {
			return err
		}
		rows[i] = row{w: w, kind: b.Kind(), data: data, n: 1}
	}
	if err := w.waitQueued(ctx, maxUnacked); err != nil {
		return err
	}
	w.mu.Lock()
	if w.unacked == 0 {
		w.since = time.Now()
	}
	w.unacked += len(rows)
	w.mu.Unlock()
	w.a.enqueueRows(rows...)
	return nil
}

// Rest ends the Writer: it withdraws the events whose commit has not begun, unless they are large,
// and returns them when all others are committed. The transaction that ends the turn stores them.
func (w *Writer) Rest(ctx context.Context) (rest []event.Body, err error) {
	for _, r := range w.a.withdrawRows(w) {
		w.acknowledgeEvents(r.n, nil)
		b, err := event.Decode(r.kind, r.data)
		if err != nil {
			return nil, err
		}
		rest = append(rest, b)
	}
	return rest, w.Flush(ctx)
}

// Flush makes the appender commit everything without patience, and waits for it.
func (w *Writer) Flush(ctx context.Context) error {
	w.mu.Lock()
	waits := w.unacked > 0
	w.mu.Unlock()
	if waits {
		wakeUp(w.a.hurry)
	}
	return w.waitQueued(ctx, 0)
}

// Waiting returns how long the log has accepted none of the events that wait for their commit; 0 if
// none waits.
func (w *Writer) Waiting() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unacked == 0 {
		return 0
	}
	return time.Since(w.since)
}

// waitQueued returns when at most n events wait for their commit, or with the first error.
func (w *Writer) waitQueued(ctx context.Context, n int) error {
	for {
		w.mu.Lock()
		unacked, err := w.unacked, w.err
		w.mu.Unlock()
		switch {
		case err != nil:
			return err
		case unacked <= n:
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.acked:
		}
	}
}

// acknowledgeEvents receives the appender's result for n events.
func (w *Writer) acknowledgeEvents(n int, err error) {
	w.mu.Lock()
	w.unacked -= n
	w.since = time.Now()
	first := err != nil && w.err == nil
	if first {
		w.err = err
	}
	w.mu.Unlock()
	if first && w.failed != nil {
		w.failed(err)
	}
	wakeUp(w.acked)
}

// firstError returns the first error, or nil.
func (w *Writer) firstError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
