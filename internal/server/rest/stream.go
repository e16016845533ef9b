package rest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/sse"
	"github.com/parley-server/parley/internal/store/apikey"
)

const (
	reconnect = 2 * time.Second  // sent with open
	finished  = 60 * time.Second // sent with done: an EventSource would come back at once otherwise
)

// tail is the part of a session's log that a stream shows: what comes after a
// cursor, up to the end of a turn.
type tail struct {
	from session.From
	turn uuid.UUID
	head *event.Open // sent first, with the cursor as its id; nil where the log's own open comes
	all  bool        // of earlier turns too, as one stream with one open and one done

	earlier map[uuid.UUID]bool // turns whose rows are shown as well, without their done
	before  map[uuid.UUID]bool // turns whose rows are not shown, even with all
}

// stream shows a tail of the log as frames. It returns no error: what goes wrong
// after the first frame can only be told by ending without done.
//
// A stream can stand here for an hour, with many beside it: what it needs only at
// its beginning or its end is in functions of its own, off this stack.
func (s *api) stream(w http.ResponseWriter, r *apiRequest, t *tail) error {
	key := r.caller.Key // and nothing else of r, so that the workspace can go
	ctx, stop := s.Keys.While(r.Context(), key)
	defer stop()
	ctx, broken := context.WithCancelCause(ctx)
	defer broken(nil)
	sw := sse.Open(w, sse.Options{Keepalive: s.Keepalive, WriteTimeout: s.WriteTimeout, Broken: broken})
	defer sw.Close()

	out := &frames{sw: sw, tail: t, id: t.from.Seq}
	err := out.begin()
	if err == nil {
		err = s.pump(ctx, out)
	}
	if err != nil {
		s.left(ctx, key, t, err)
	}
	return nil
}

// pump writes what comes until the turn is done.
func (s *api) pump(ctx context.Context, out *frames) error {
	for evs, err := range s.Events(ctx, out.tail.from, out.tail.turn) {
		if errors.Is(err, session.ErrGone) {
			return errors.Join(err, out.gone(), out.sw.Flush())
		}
		if err == nil {
			err = out.send(evs)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// left notes why a stream closed without the done of its turn: its reader is gone
// or too slow, its key is dead, its rows are, the database is, or the service stops.
func (s *api) left(ctx context.Context, key string, t *tail, err error) {
	level, why := slog.LevelDebug, "a stream ended early"
	switch {
	case errors.Is(err, session.ErrGone):
		level, why = slog.LevelWarn, "told a stream that its events are gone"
	case errors.Is(err, apikey.ErrDead):
		level, why = slog.LevelInfo, "closed a stream: its key is not valid any more"
	case errors.Is(err, os.ErrDeadlineExceeded) && errors.Is(err, sse.ErrBroken):
		level, why = slog.LevelInfo, "closed a stream: its reader takes nothing"
	case !errors.Is(err, sse.ErrBroken) && ctx.Err() == nil:
		level, why = slog.LevelWarn, "closed a stream: it lost the database"
	}
	s.Log.Log(context.WithoutCancel(ctx), level, why, "session", t.from.Session, "turn", t.turn, "key", key, "err", err)
}

// frames writes a tail of the log.
type frames struct {
	sw   *sse.Writer
	tail *tail
	id   int64 // of the newest frame
}

// begin sends the open frame of a stream that is attached later.
func (f *frames) begin() error {
	if f.tail.head == nil {
		return nil
	}
	f.sw.Retry(reconnect)
	if err := f.synthetic(*f.tail.head); err != nil {
		return err
	}
	return f.sw.Flush()
}

// send writes a batch of events, in one piece where it can.
func (f *frames) send(evs []event.Event) error {
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
			err = f.done(true)
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
	return f.sw.Flush()
}

// shows reports whether an event is part of a stream. Others are of turns that are lined up.
func (t *tail) shows(ev *event.Event) bool {
	return t.all && !t.before[ev.Turn] || ev.Turn == t.turn || t.earlier[ev.Turn] && ev.Kind != event.KindDone
}

// done is a last frame that no row stands for.
func (f *frames) done(resumed bool) error {
	f.sw.Retry(finished)
	return f.synthetic(event.Done{SessionID: f.tail.from.Session, Resumed: &resumed})
}

// gone says that the session cannot be resumed from the reader's cursor.
func (f *frames) gone() error {
	if f.tail.head == nil && f.id == f.tail.from.Seq { // the log's own open is gone as well
		f.sw.Retry(reconnect)
		if err := f.synthetic(event.Open{SessionID: f.tail.from.Session}); err != nil {
			return err
		}
	}
	err := f.synthetic(event.SessionGone.Failure("The events after this cursor are not available: " +
		"its id is not of an event of this session, or the events were removed. " +
		"Read the session's messages, then start without a cursor."))
	if err != nil {
		return err
	}
	f.sw.Retry(finished)
	return f.synthetic(event.Done{SessionID: f.tail.from.Session})
}

// synthetic writes a frame that no row stands for. Its id is a cursor that the
// reader has already.
func (f *frames) synthetic(b event.Body) error {
	data, err := event.Encode(b)
	if err != nil {
		return err
	}
	return f.sw.Event(string(b.Kind()), f.id, data)
}
