package eventlog

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/event"
)

const (
	batchRows  = 4096     // maximum rows of one commit
	batchBytes = 4 << 20  // maximum bytes of their data, except for one larger row
	maxUnacked = 256      // maximum number of one writer's deltas that wait for their commit
	maxMerged  = 32 << 10 // maximum bytes of text in one row

	defaultPatience = 4 * time.Millisecond
	// recent, times Options.Patience, is the time within which another writer must have appended
	// text to count as writing now. If text arrives less often, waiting gains nothing.
	recent = 5

	lockedPause  = 5 * time.Millisecond  // before a locked session is retried
	refusedPause = 20 * time.Millisecond // before a rejected batch is retried; doubles
)

func defaultAppenders() int {
	if runtime.NumCPU() >= 4 {
		return 2
	}
	return 1
}

// row is an event before its commit.
type row struct {
	w     *Writer
	kind  event.Kind
	data  []byte
	n     int       // number of Append calls whose events it contains, after merging
	until time.Time // when a row of a locked session fails; zero: its session was not locked
}

// appender commits the rows that were queued while its last commit ran. While several writers
// append text, text waits for that of the others, but no longer than Options.Patience. A lone
// writer's text does not wait, and a row that its writer waits for is committed with everything in
// the queue.
//
// It writes the rows of one Writer in order or not at all: after a batch whose fate is unknown, or
// that PostgreSQL rejected, no later row of its writers is written, whether it is already queued or
// appended afterwards. So the stored events of an attempt are a prefix of those its writer
// received. If PostgreSQL is still processing such a batch, the fence prevents it from being
// written after the rows of the next attempt.
type appender struct {
	log   *Log
	wake  chan struct{}
	hurry chan struct{} // a writer waits for the next commit

	mu     sync.Mutex
	queue  []row
	round  int       // number of the queue's round: a Writer's place in it is valid for one round
	since  time.Time // when the first row of the round was queued; zero: none is, or only rows of an earlier round
	newest [2]texter // the two writers that appended text last, the later one first
}

// texter is a writer and the time at which it last appended text.
type texter struct {
	w  *Writer
	at time.Time
}

func newAppender(l *Log) *appender {
	return &appender{log: l, wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1)}
}

// enqueueRows adds rows that must stay adjacent. Text joins the text before it if that is from the
// same writer and still waits.
func (a *appender) enqueueRows(rows ...row) {
	now := time.Now()
	a.mu.Lock()
	if a.since.IsZero() {
		a.since = now
	}
	for _, r := range rows {
		if r.kind.IsDelta() {
			a.noteText(r.w, now)
		}
		if r.kind.IsDelta() && r.w.round == a.round && r.w.place < len(a.queue) {
			if last := &a.queue[r.w.place]; last.w == r.w && last.kind == r.kind && len(last.data) < maxMerged {
				last.data = event.MergeText(last.data, r.data)
				last.n += r.n
				continue
			}
		}
		r.w.round, r.w.place = a.round, len(a.queue)
		a.queue = append(a.queue, r)
	}
	a.mu.Unlock()
	wakeUp(a.wake)
}

// noteText records that a writer appended text.
func (a *appender) noteText(w *Writer, now time.Time) {
	if w != a.newest[0].w {
		a.newest[1] = a.newest[0]
	}
	a.newest[0] = texter{w, now}
}

func (a *appender) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			a.failAll(errors.New("the service is stopping"))
			return nil
		case <-a.wake:
		}
		if d := a.gatherTime(time.Now()); d > 0 {
			a.gatherText(ctx, d)
		}
		if rows := a.takeBatch(); len(rows) > 0 {
			a.putBack(a.commitRows(ctx, rows))
		}
	}
}

// gatherTime returns how much longer the queue waits for more text.
func (a *appender) gatherTime(now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	other := a.newest[1]
	if a.since.IsZero() || len(a.queue) >= batchRows || now.Sub(other.at) > recent*a.log.opt.Patience {
		return 0
	}
	return a.since.Add(a.log.opt.Patience).Sub(now)
}

// gatherText lets text gather until a writer waits for the commit.
func (a *appender) gatherText(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-a.hurry:
	case <-t.C:
	}
}

// takeBatch removes the next batch from the queue. Rows of writers that have failed are dropped.
func (a *appender) takeBatch() []row {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.hurry:
	default:
	}
	a.round++
	a.since = time.Time{}
	rows := make([]row, 0, min(len(a.queue), batchRows))
	n, bytes := 0, 0
	for ; n < len(a.queue) && len(rows) < batchRows; n++ {
		r := a.queue[n]
		if err := r.w.firstError(); err != nil {
			r.w.acknowledgeEvents(r.n, err)
			continue
		}
		if bytes += len(r.data); bytes > batchBytes && len(rows) > 0 {
			break
		}
		rows = append(rows, r)
	}
	if a.queue = append(make([]row, 0, len(a.queue)), a.queue[n:]...); len(a.queue) > 0 {
		wakeUp(a.wake)
	}
	return rows
}

// withdrawRows removes the rows of a writer from the queue, unless they are large.
func (a *appender) withdrawRows(w *Writer) []row {
	a.mu.Lock()
	defer a.mu.Unlock()
	var rows, others []row
	bytes := 0
	for _, r := range a.queue {
		if r.w == w {
			rows = append(rows, r)
			bytes += len(r.data)
		} else {
			others = append(others, r)
		}
	}
	if len(rows) == 0 || bytes > maxMerged {
		return nil
	}
	a.queue = others
	a.round++
	return rows
}

// putBack puts rows at the front of the queue, to be retried after a pause.
func (a *appender) putBack(rows []row) {
	if len(rows) == 0 {
		return
	}
	a.mu.Lock()
	a.queue = append(rows, a.queue...)
	a.round++
	a.mu.Unlock()
	time.AfterFunc(lockedPause, func() { wakeUp(a.wake) })
}

func (a *appender) failAll(err error) {
	for rows := a.takeBatch(); len(rows) > 0; rows = a.takeBatch() {
		failWriters(rows, err)
	}
}

// failWriters fails the writers of rows that are not, or may not be, in the log.
func failWriters(rows []row, err error) {
	for _, r := range rows {
		r.w.acknowledgeEvents(r.n, err)
	}
}

// wakeUp wakes the goroutine that waits on a channel of capacity one.
func wakeUp(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sleepContext waits for d or until ctx ends.
func sleepContext(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
