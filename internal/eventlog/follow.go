package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/crashpoint"
	"github.com/parley-server/parley/internal/event"
)

// A replay reads enough rows at once to make about pageBytes.
const (
	firstRows = 200
	leastRows = 16
	pageRows  = 1000
	pageBytes = 512 << 10
)

// Skew is how far before Since rows are searched: PostgreSQL's clock may be set back while a turn
// runs.
const Skew = time.Hour

// From is the position of a reader.
type From struct {
	Session uuid.UUID
	Seq     int64     // the reader has everything up to here
	Since   time.Time // no requested row is older: the creation of the turn, or of the session
}

// ErrGone is returned if events after the cursor have been removed. ErrErased is an ErrGone: they were
// removed because the session was erased.
var (
	ErrGone   = errors.New("events of this session are gone")
	ErrErased = fmt.Errorf("%w: the session was erased", ErrGone)
)

// Follow yields the committed events after a cursor, in order, without a hole and without end:
// first the stored events, then new ones. Each yield contains the events that are ready, at least
// one, internal kinds included. If a row is missing it ends with ErrGone. Break the loop to stop.
func (l *Log) Follow(ctx context.Context, from From) iter.Seq2[[]event.Event, error] {
	return func(yield func([]event.Event, error) bool) {
		t, wake := l.topics.joinReader(from) // before the first read, or a commit in between is missed
		defer l.topics.leaveReader(t, wake)
		crashpoint.Hit("sse.after_subscribe_before_read")
		cursor, pages := from.Seq, pager{log: l, from: from, rows: firstRows}
		var seen unbroken
		for {
			evs, known := t.eventsAfter(cursor)
			if !known {
				page, last, err := pages.nextPage(ctx, cursor)
				if err != nil {
					yield(nil, err)
					return
				}
				evs = page
				if last {
					t.caughtUp(cursor, page)
				}
			}
			if err := seen.checkOrder(evs); err != nil {
				yield(nil, err)
				return
			}
			if len(evs) > 0 {
				cursor = evs[len(evs)-1].Seq
				if !yield(evs, nil) {
					return
				}
				crashpoint.Hit("sse.between_rows")
				continue
			}
			select {
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			case <-wake:
			}
		}
	}
}

// After yields the events after a cursor that are stored now, page by page. Like Follow it ends
// with ErrGone if one is missing.
func (l *Log) After(ctx context.Context, from From) iter.Seq2[[]event.Event, error] {
	return func(yield func([]event.Event, error) bool) {
		pages := pager{log: l, from: from, rows: firstRows}
		var seen unbroken
		for cursor := from.Seq; ; {
			page, last, err := pages.nextPage(ctx, cursor)
			if err == nil {
				err = seen.checkOrder(page)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if len(page) > 0 && !yield(page, nil) || last {
				return
			}
			cursor = page[len(page)-1].Seq
		}
	}
}

// unbroken checks that the ordinals of a session's events have no gaps.
type unbroken struct{ ord int64 }

// checkOrder fails unless the events directly follow the previous ones and are not erased.
func (u *unbroken) checkOrder(evs []event.Event) error {
	for i := range evs {
		ev := &evs[i]
		if u.ord != 0 && ev.Ord != u.ord+1 {
			return fmt.Errorf("%w: event %d follows event %d", ErrGone, ev.Ord, u.ord)
		}
		if string(ev.Data) == erased {
			return fmt.Errorf("%w: event %d is empty", ErrErased, ev.Ord)
		}
		u.ord = ev.Ord
	}
	return nil
}

// pager reads a session's log from the table.
type pager struct {
	log  *Log
	from From
	rows int32
}

// nextPage reads a page after a cursor; last reports that it is the newest. It runs on its own
// goroutine: a reader may stay for hours, and would keep the stack that a query needs, which is
// twice as large as its own.
func (p *pager) nextPage(ctx context.Context, cursor int64) (evs []event.Event, last bool, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		evs, last, err = p.readPage(ctx, cursor)
	}()
	<-done
	return evs, last, err
}

func (p *pager) readPage(ctx context.Context, cursor int64) (evs []event.Event, last bool, err error) {
	rows, err := p.log.q.EventsAfter(ctx, p.from.Session, cursor, p.from.Since.Add(-Skew), p.rows)
	if err != nil {
		return nil, false, fmt.Errorf("read events: %w", err)
	}
	if len(rows) > 0 && rows[0].Ord != rows[0].Before+1 { // the cursor's own row may be missing as well
		return nil, false, fmt.Errorf("%w: event %d follows event %d", ErrGone, rows[0].Ord, rows[0].Before)
	}
	last = len(rows) < int(p.rows)
	bytes := 0
	evs = make([]event.Event, len(rows))
	for i, r := range rows {
		evs[i] = eventOf(p.from.Session, r)
		bytes += len(r.Data)
	}
	if bytes > 0 {
		p.rows = int32(min(max(pageBytes*len(rows)/bytes, leastRows), pageRows))
	}
	return evs, last, nil
}

func eventOf(session uuid.UUID, r db.EventsAfterRow) event.Event {
	return event.Event{Seq: r.Seq, Ord: r.Ord, Session: session, Turn: r.TurnID, At: r.At, Kind: event.Kind(r.Kind), Data: r.Data}
}
