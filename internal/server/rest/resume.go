package rest

import (
	"context"
	"errors"
	"net/http"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/call"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/sse"
)

// resumeStream attaches a reader to a session.
func (s *api) resumeStream(w http.ResponseWriter, r *call.Request) error {
	release := func() {}
	defer func() { release() }()
	var t *tail
	err := server.Aside(func() (err error) {
		if release, err = s.holdStream(r); err != nil {
			return err
		}
		t, err = s.openTail(w, r)
		return err
	})
	if err != nil || t == nil {
		return err
	}
	return s.streamTail(w, r, t)
}

// holdStream counts an open stream of the caller.
func (s *api) holdStream(r *call.Request) (release func(), err error) {
	if release, err = s.HoldStream(r.Context(), r.Caller); err != nil {
		return func() {}, err
	}
	return release, nil
}

// openTail returns the part of the log that a stream shows. Without a turn to follow it writes the
// whole response and returns nil.
func (s *api) openTail(w http.ResponseWriter, r *call.Request) (*tail, error) {
	a, err := s.attachReader(r)
	if err != nil {
		return nil, err
	}
	if r.Method == http.MethodHead {
		sse.Headers(w.Header())
		w.WriteHeader(http.StatusOK)
		return nil, nil
	}
	if t := a.tailOfTurn(); t != nil {
		return t, nil
	}
	return nil, s.replayMissed(w, r, a)
}

// attachment is a reader's request and the state of the session.
type attachment struct {
	head   session.Head
	cursor int64
	given  bool // false: the reader has no cursor
	all    bool
}

// attachReader parses a reader's request, and reads the session.
func (s *api) attachReader(r *call.Request) (*attachment, error) {
	if err := request.Accepts(r.Request, request.StreamType); err != nil {
		return nil, err
	}
	query := r.Query()
	if query.Broken { // the lost part may be the cursor
		return nil, server.InvalidCursor("query", "The query string cannot be parsed.")
	}
	// An EventSource repeats its first query forever, so the header is newer.
	a := &attachment{}
	var err error
	if a.cursor, a.given, err = server.ParseCursor("last_event_id", query.Values["last_event_id"]); err != nil {
		return nil, err
	}
	if values := r.Header.Values("Last-Event-ID"); len(values) > 0 {
		if a.cursor, a.given, err = server.ParseCursor("Last-Event-ID", values); err != nil {
			return nil, err
		}
	}
	a.all = replaysAll(query)
	if err := query.Err(); err != nil {
		return nil, err
	}
	id, err := r.Session(s.Server)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	a.head, err = s.Sessions.HeadAt(ctx, r.Caller.Workspace.ID, id, a.cursor)
	return a, err
}

// errForeign is the cause of a stream that cannot begin: the cursor is not an event of the session.
var errForeign = errors.New("cursor of another session")

// gone returns the reason why the cursor cannot be resumed from, or nil. A number that is not an event
// of the session was never sent: the log was lost, or the cursor is of another session. Events older
// than the replay window are not shown, even if they still exist.
func (a *attachment) gone() error {
	h := &a.head
	switch {
	case h.Erased:
		return eventlog.ErrErased
	case h.Foreign:
		return errForeign
	case (a.all || h.Missed.Turns != nil) && a.cursor < h.GoneSeq:
		return eventlog.ErrGone
	}
	return nil
}

// tailOfTurn returns the tail for a reader of a running turn, nil if no turn runs.
func (a *attachment) tailOfTurn() *tail {
	h := &a.head
	if a.gone() != nil || h.Status() != session.Thinking {
		return nil
	}
	t := &tail{turn: h.Turn, all: a.all, before: h.Before, from: eventlog.From{Session: h.Session, Seq: a.cursor, Since: h.TurnAt}}
	switch {
	case a.all:
		t.from.Since = h.Created
	case h.Missed.Turns != nil: // the rest of the turns that the reader has seen, then the turn in progress
		t.earlier, t.from.Since = h.Missed.Turns, h.Missed.Since
	case a.cursor < h.StartSeq: // a cursor of an older turn, or 0
		t.from.Seq = h.StartSeq
	}
	t.head = &event.Open{SessionID: h.Session, FromSeq: new(t.from.Seq)}
	return t
}

// replayMissed responds to a reader when no turn is in progress: with the end, or with the missed
// events and then the end.
func (s *api) replayMissed(w http.ResponseWriter, r *call.Request, a *attachment) error {
	h := &a.head
	seq := a.cursor
	switch {
	case h.Foreign && h.Status() == session.Thinking: // an id without a row is not repeated
		seq = h.StartSeq
	case h.Foreign || !a.given && !a.all:
		seq = h.LastSeq
	}
	t := &tail{turn: h.Turn, all: true, before: h.Before, from: eventlog.From{Session: h.Session, Seq: seq, Since: h.Created},
		head: &event.Open{SessionID: h.Session, FromSeq: &seq}}
	return s.writeClosed(w, r, t, func(f *frames) error {
		switch gone := a.gone(); {
		case gone != nil:
			return f.sendGone(gone)
		case !a.all || h.Status() == session.NotStarted:
			return f.sendDone(false)
		}
		return s.sendMissed(r, f, h.LastSeq)
	})
}

// writeClosed responds with a stream that ends by itself.
func (s *api) writeClosed(w http.ResponseWriter, r *call.Request, t *tail, rest func(*frames) error) error {
	_ = s.WriteStream(w, r.Context(), t.logAttributes(r.Caller.Credential()), func(_ context.Context, sw *sse.Writer) error {
		out := &frames{sw: sw, tail: t, id: t.from.Seq}
		if err := out.Begin(); err != nil {
			return err
		}
		if err := rest(out); err != nil {
			return err
		}
		return sw.Flush()
	})
	return nil
}

// sendMissed sends every row after the cursor; the last one is the end of a turn, which only
// feedback follows.
func (s *api) sendMissed(r *call.Request, out *frames, last int64) error {
	read, onlyFeedback := out.tail.from.Seq, true
	for evs, err := range s.EventLog.After(r.Context(), out.tail.from) {
		if errors.Is(err, eventlog.ErrGone) {
			return errors.Join(err, out.sendGone(err), out.sw.Flush())
		}
		if err != nil {
			return err
		}
		for i := range evs {
			read, onlyFeedback = evs[i].Seq, onlyFeedback && evs[i].Kind == event.KindFeedback
		}
		evs, ended := server.CutAtDone(evs, out.tail.turn)
		err = out.sendBatch(evs)
		if err == nil {
			err = out.sw.Flush()
		}
		if err != nil || ended {
			return err
		}
	}
	if read < last || !onlyFeedback {
		return out.sendGone(eventlog.ErrGone)
	}
	return out.sendDone(true) // the reader has everything
}

// replaysAll parses the request for all missed events.
func replaysAll(q *request.Query) bool {
	switch values := q.Values["replay"]; {
	case len(values) == 0:
		return false
	case len(values) == 1 && values[0] == "all":
		return true
	}
	q.Add(fault.Violation{Param: "/replay", Rule: "enum", Message: "replay can only be all, once.", Allowed: []any{"all"}})
	return false
}
