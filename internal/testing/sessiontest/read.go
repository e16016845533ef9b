package sessiontest

import (
	"context"
	"testing"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
)

// UntilDone follows a session until done and returns its events.
func (r *Replica) UntilDone(ctx context.Context, from eventlog.From) ([]event.Event, error) {
	var all []event.Event
	for evs, err := range r.Follow(ctx, from) {
		if err != nil {
			return all, err
		}
		for _, ev := range evs {
			all = append(all, ev)
			if ev.Kind == event.KindDone {
				return all, nil
			}
		}
	}
	return all, nil
}

// Until follows a session up to an event.
func (r *Replica) Until(ctx context.Context, from eventlog.From, last int64) (all []event.Event, err error) {
	if from.Seq >= last {
		return nil, nil
	}
	for evs, err := range r.Follow(ctx, from) {
		if err != nil {
			return all, err
		}
		all = append(all, evs...)
		if all[len(all)-1].Seq >= last {
			break
		}
	}
	return all, nil
}

// Stored returns the events after a cursor.
func (r *Replica) Stored(ctx context.Context, from eventlog.From) (all []event.Event, err error) {
	for evs, err := range r.After(ctx, from) {
		if err != nil {
			return all, err
		}
		all = append(all, evs...)
	}
	return all, nil
}

// Rows returns the table's rows of a session after a cursor.
func (r *Replica) Rows(t testing.TB, from eventlog.From) []event.Event {
	t.Helper()
	all, err := r.Stored(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
