package server

import (
	"context"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/pgerr"
)

// Events is the one loop behind streams and blocking calls. It yields committed events, including
// internal kinds, in order and without a gap, and ends after the turn's done. If the database is
// away, it waits for a limited time.
func (s *Server) Events(ctx context.Context, from eventlog.From, turn uuid.UUID) iter.Seq2[[]event.Event, error] {
	return func(yield func([]event.Event, error) bool) {
		var since time.Time // start of the database's outage
		for {
			var failed error
			began := time.Now()
			joined := began.Add(s.EventLog.ClockOffset())
			for evs, err := range s.EventLog.Follow(ctx, from) {
				if err != nil {
					failed = err
					break
				}
				since = time.Time{}
				s.reads.Note(ctx, nil)
				evs, ended := CutAtDone(evs, turn)
				goesOn := yield(evs, nil)
				s.countDelivered(evs, joined)
				if !goesOn || ended {
					return
				}
				from.Seq = evs[len(evs)-1].Seq
			}
			if since.IsZero() || time.Since(began) > s.Outage {
				since = time.Now()
			}
			if ctx.Err() != nil || !pgerr.IsTransient(failed) || time.Since(since) > s.Outage {
				yield(nil, failed)
				return
			}
			s.waitForDatabase(ctx, from.Session, turn, failed)
		}
	}
}

// countDelivered counts events that a reader has taken. Those older than the reader say nothing of
// the delivery.
func (s *Server) countDelivered(evs []event.Event, joined time.Time) {
	last := evs[len(evs)-1]
	if last.At.Before(joined) {
		return
	}
	s.Metrics.Delivered.Add(float64(len(evs)))
	s.Metrics.DeliveryLag.Observe(max(0, time.Since(last.At)+s.EventLog.ClockOffset()).Seconds())
}

// CutAtDone cuts a batch after the done of a turn; ended reports whether it has one.
func CutAtDone(evs []event.Event, turn uuid.UUID) (cut []event.Event, ended bool) {
	for i := range evs {
		if evs[i].Kind == event.KindDone && evs[i].Turn == turn {
			return evs[:i+1], true
		}
	}
	return evs, false
}

// waitForDatabase pauses after an error to let the database return.
func (s *Server) waitForDatabase(ctx context.Context, session, turn uuid.UUID, err error) {
	s.reads.Note(ctx, err, "session", session, "turn", turn)
	timer := time.NewTimer(250 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
