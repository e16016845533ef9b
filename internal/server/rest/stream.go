package rest

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/rest/call"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/sse"
)

const (
	reconnect = 2 * time.Second  // sent with open
	finished  = 60 * time.Second // sent with done: otherwise an EventSource would reconnect at once
)

// tail is the part of a session's log that a stream shows: the events after a cursor, up to the end
// of a turn.
type tail struct {
	from eventlog.From
	turn uuid.UUID
	head *event.Open // sent first, with the cursor as its id; nil if the log's own open follows
	all  bool        // include earlier turns, as one stream with one open and one done

	earlier map[uuid.UUID]bool // turns whose rows are shown as well, without their done
	before  map[uuid.UUID]bool // turns whose rows are not shown, even with all
}

// streamTail writes a tail of the log as frames. After the first frame it returns no error: it ends
// without done.
//
// A stream can wait here for an hour, beside many others: the parts that it needs only at its start
// or its end are in functions of their own, off this stack.
func (s *api) streamTail(w http.ResponseWriter, r *call.Request, t *tail) error {
	key := r.Caller.Credential() // only the key, so that the workspace can be freed
	_ = server.StreamTurn(s.Server, w, r.Context(), t.logAttributes(key),
		func(ctx context.Context) iter.Seq2[[]event.Event, error] { return s.Events(ctx, t.from, t.turn) },
		func(sw *sse.Writer) server.BatchEncoder[event.Event] { return &frames{sw: sw, tail: t, id: t.from.Seq} })
	return nil
}

// logAttributes returns the log attributes of a stream.
func (t *tail) logAttributes(key string) server.Stream {
	return server.Stream{Session: t.from.Session, Turn: t.turn, Key: key}
}

// frames writes a tail of the log.
type frames struct {
	sw   *sse.Writer
	tail *tail
	id   int64 // id of the newest frame
}

// Begin writes the open frame of a stream that was attached later.
func (f *frames) Begin() error {
	if f.tail.head == nil {
		return nil
	}
	f.sw.Retry(reconnect)
	if err := f.sendSynthetic(*f.tail.head); err != nil {
		return err
	}
	return f.sw.Flush()
}

// Batch writes a batch of events.
func (f *frames) Batch(evs []event.Event) (ended bool, err error) { return false, f.sendBatch(evs) }

// Gone writes the end of a stream whose events are not available.
func (f *frames) Gone(err error) error { return f.sendGone(err) }

// sendBatch writes a batch of events, in one write if possible.
func (f *frames) sendBatch(evs []event.Event) error {
	for i := range evs {
		ev := &evs[i]
		if !ev.Kind.Public() || !f.tail.shows(ev) {
			continue
		}
		var err error
		last := ev.Kind == event.KindDone && ev.Turn == f.tail.turn
		switch {
		case f.tail.all && last:
			f.id = ev.Seq
			err = f.sendDone(true)
		case f.tail.all && (ev.Kind == event.KindDone || ev.Kind == event.KindOpen):
			continue
		default:
			switch {
			case ev.Kind == event.KindOpen:
				f.sw.Retry(reconnect)
			case last:
				f.sw.Retry(finished)
			}
			f.id = ev.Seq
			err = f.sw.Event(string(ev.Kind), ev.Seq, ev.Data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shows reports whether an event is part of a stream. Other events belong to queued turns.
func (t *tail) shows(ev *event.Event) bool {
	return t.all && !t.before[ev.Turn] || ev.Turn == t.turn || t.earlier[ev.Turn] && ev.Kind != event.KindDone
}

// sendDone writes a last frame without a row.
func (f *frames) sendDone(resumed bool) error {
	f.sw.Retry(finished)
	return f.sendSynthetic(event.Done{SessionID: f.tail.from.Session, Resumed: &resumed})
}

// sendGone writes session_gone and its cause: the session cannot be resumed from the reader's cursor.
func (f *frames) sendGone(cause error) error {
	if f.tail.head == nil && f.id == f.tail.from.Seq { // the log's own open is missing as well
		f.sw.Retry(reconnect)
		if err := f.sendSynthetic(event.Open{SessionID: f.tail.from.Session}); err != nil {
			return err
		}
	}
	const remedy = " Read the session's messages, then start without a cursor."
	message := "The events after this cursor are past the replay window, or were removed." + remedy
	switch {
	case errors.Is(cause, eventlog.ErrErased):
		message = session.Erased(f.tail.from.Session).Message
	case errors.Is(cause, errForeign):
		message = "The cursor is not the id of an event of this session." + remedy
	}
	if err := f.sendSynthetic(event.SessionGone.Failure(message)); err != nil {
		return err
	}
	f.sw.Retry(finished)
	return f.sendSynthetic(event.Done{SessionID: f.tail.from.Session})
}

// sendSynthetic writes a frame without a row. Its id is a cursor that the reader already has.
func (f *frames) sendSynthetic(b event.Body) error {
	data, err := event.Encode(b)
	if err != nil {
		return err
	}
	return f.sw.Event(string(b.Kind()), f.id, data)
}
