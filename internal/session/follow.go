package session

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
)

// pageRows is how many rows a replay reads at once.
const pageRows = 1000

// skew is how far back before Since rows are looked for: PostgreSQL's clock may be
// set back while a turn runs.
const skew = time.Hour

// From is where a reader stands.
type From struct {
	Session uuid.UUID
	Seq     int64     // the reader has everything up to here
	Since   time.Time // nothing it asks for is older: the creation of the turn, or of the session
}

// Follow yields the committed events after a cursor, in order and without end:
// first what is there, then what comes. Each yield holds what was ready, at least
// one event; internal kinds are among them. Break off the loop to stop.
func (s *Store) Follow(ctx context.Context, from From) iter.Seq2[[]event.Event, error] {
	return func(yield func([]event.Event, error) bool) {
		t, wake := s.topics.join(from) // before the first read, or a commit in between is missed
		defer s.topics.leave(t, wake)
		cursor := from.Seq
		for {
			evs, known := t.after(cursor)
			if !known {
				page, err := s.page(ctx, from, cursor)
				if err != nil {
					yield(nil, err)
					return
				}
				evs = page
				if len(page) < pageRows {
					t.caughtUp(cursor, page)
				}
			}
			if len(evs) > 0 {
				cursor = evs[len(evs)-1].Seq
				if !yield(evs, nil) {
					return
				}
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

// After yields the events after a cursor that are there now, page by page.
func (s *Store) After(ctx context.Context, from From) iter.Seq2[[]event.Event, error] {
	return func(yield func([]event.Event, error) bool) {
		for cursor := from.Seq; ; {
			page, err := s.page(ctx, from, cursor)
			if err != nil {
				yield(nil, err)
				return
			}
			if len(page) > 0 && !yield(page, nil) || len(page) < pageRows {
				return
			}
			cursor = page[len(page)-1].Seq
		}
	}
}

// page reads the next rows after a cursor.
func (s *Store) page(ctx context.Context, from From, cursor int64) ([]event.Event, error) {
	rows, err := s.q.EventsAfter(ctx, from.Session, cursor, from.Since.Add(-skew), pageRows)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	evs := make([]event.Event, len(rows))
	for i, r := range rows {
		evs[i] = eventOf(from.Session, r)
	}
	return evs, nil
}

func eventOf(session uuid.UUID, r db.EventsAfterRow) event.Event {
	return event.Event{Seq: r.Seq, Ord: r.Ord, Session: session, Turn: r.TurnID, At: r.At, Kind: event.Kind(r.Kind), Data: r.Data}
}
