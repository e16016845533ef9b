package session

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/pgerr"
)

const (
	batchRows  = 4096                 // rows of one commit at most
	busyRows   = 16                   // a batch at least this big makes the next one linger
	linger     = 2 * time.Millisecond // how long it lingers at most, and only over text
	maxUnacked = 256                  // deltas of one writer that may wait for their commit
	maxMerged  = 32 << 10             // bytes of text that one row takes
)

func defaultAppenders() int {
	if runtime.NumCPU() >= 4 {
		return 2
	}
	return 1
}

// row is an event on its way into the log.
type row struct {
	w    *Writer
	kind event.Kind
	data []byte
	n    int // how many Append calls' worth of events it carries, after merging
}

// appender commits whatever queued while its last commit ran: no timer at rest, a
// short linger under load.
type appender struct {
	s     *Store
	wake  chan struct{}
	hurry chan struct{} // somebody waits for the next commit

	mu    sync.Mutex
	queue []row
	round int // of the queue: a Writer's place in it holds for one round
}

func newAppender(s *Store) *appender {
	return &appender{s: s, wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1)}
}

// enqueue adds rows that shall stand side by side. Text joins the text before it,
// where that is the same writer's and still waits.
func (a *appender) enqueue(rows ...row) {
	a.mu.Lock()
	for _, r := range rows {
		if r.kind == event.KindText && r.w.round == a.round && r.w.place < len(a.queue) {
			if last := &a.queue[r.w.place]; last.w == r.w && last.kind == event.KindText && len(last.data) < maxMerged {
				last.data = event.MergeText(last.data, r.data)
				last.n += r.n
				continue
			}
		}
		r.w.round, r.w.place = a.round, len(a.queue)
		a.queue = append(a.queue, r)
	}
	a.mu.Unlock()
	signal(a.wake)
	if rows[len(rows)-1].kind != event.KindText {
		signal(a.hurry)
	}
}

func (a *appender) run(ctx context.Context) error {
	last := 0
	for {
		select {
		case <-ctx.Done():
			a.fail(errors.New("the service is stopping"))
			return nil
		case <-a.wake:
		}
		if last >= busyRows {
			a.linger(ctx)
		}
		rows := a.take()
		last = len(rows)
		if last > 0 {
			a.commit(ctx, rows)
		}
	}
}

// linger lets text gather: its writers go on anyway. Who waits for a commit ends it.
func (a *appender) linger(ctx context.Context) {
	t := time.NewTimer(linger)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-a.hurry:
	case <-t.C:
	}
}

func (a *appender) take() []row {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.hurry:
	default:
	}
	rows := a.queue
	a.round++
	if len(rows) > batchRows {
		rows, a.queue = rows[:batchRows:batchRows], rows[batchRows:]
		signal(a.wake)
	} else {
		a.queue = make([]row, 0, len(rows))
	}
	return rows
}

func (a *appender) fail(err error) {
	for _, r := range a.take() {
		r.w.ack(r.n, err)
	}
}

// commit writes the rows and tells their writers and readers. A batch that
// PostgreSQL refused whole is tried again; one whose fate is unknown is not, since
// its rows may be there: their turns are resumed from the log instead.
func (a *appender) commit(ctx context.Context, rows []row) {
	delay := 20 * time.Millisecond
	for {
		err := a.write(ctx, rows)
		if err == nil {
			return
		}
		if !pgerr.IsRefused(err) || !pgerr.IsTransient(err) || delay > 2*time.Second {
			a.s.log.WarnContext(ctx, "append to the log", "rows", len(rows), "err", err)
			for _, r := range rows {
				r.w.ack(r.n, fmt.Errorf("append to the log: %w", err))
			}
			return
		}
		if pgerr.IsStalePlan(err) {
			a.s.pool.Reset() // every idle connection has the stale plan too
		}
		pause(ctx, delay)
		delay *= 2
	}
}

// signal wakes whoever waits on a channel of size one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
