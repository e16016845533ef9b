package rest

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/call"
	"github.com/parley-server/parley/internal/turn"
)

// parseMessage checks a message. Its error lists the violations in c first.
func parseMessage(c *request.Checks, body []request.Member, h http.Header) (request.Message, error) {
	m := c.Message(body, request.MessageFields)
	m.IdempotencyKey = c.Once(h.Values("Idempotency-Key"))
	return m, c.Err()
}

// sendMessage starts a turn and responds with its events, with its outcome, or, for a callback,
// with its ids. A repeated message finds its turn.
func (s *api) sendMessage(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.StreamType, request.JSONType); err != nil {
		return err
	}
	body, raw, err := request.ReadBody(w, r.Request)
	if err != nil {
		return err
	}
	m, err := parseMessage(r.Query().Checks, body, r.Header)
	if err != nil {
		return err
	}
	if err := r.ConfineMessage(s.Server, &m.Request); err != nil {
		return err
	}
	if m.LastEvent, _, err = server.ParseCursor("Last-Event-ID", r.Header.Values("Last-Event-ID")); err != nil {
		return err
	}
	if err := checkAccept(r.Request, m.Stream); err != nil {
		return err
	}
	if m.Stream || m.Callback == nil {
		release, err := s.HoldStream(r.Context(), r.Caller)
		if err != nil {
			return err
		}
		defer release()
	}
	started, err := s.StartTurn(r.Context(), s.Base(r.Request), r.Caller, m.Request, raw)
	if err != nil {
		return err
	}
	if started.Replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	switch {
	case m.Stream:
		return s.showTurn(w, r, started, m.LastEvent)
	case m.Callback != nil:
		return s.writeAccepted(w, r, started)
	}
	return s.writeOutcome(w, r, started)
}

// checkAccept checks that the caller accepts the media type of the response: a stream, or the whole
// answer.
func checkAccept(r *http.Request, stream bool) error {
	is, other, way := request.JSONType, request.StreamType, true
	if stream {
		is, other, way = request.StreamType, request.JSONType, false
	}
	if request.Accepts(r, is) == nil {
		return nil
	}
	return fault.New(fault.NotAcceptable, "The answer is %s, which the Accept header does not allow. With \"stream\":%t it is %s.", is,
		way, other)
}

// showTurn streams a turn that was just started, or to which a client with a cursor reconnects.
func (s *api) showTurn(w http.ResponseWriter, r *call.Request, started turn.Started, cursor int64) error {
	t := &tail{from: started.From, turn: started.Turn}
	if cursor > 0 {
		t.head = &event.Open{SessionID: started.Session, FromSeq: new(t.from.Seq)}
		last, err := s.endOfTurn(r, started)
		if err != nil {
			return s.acceptedError(r, started.From.Seq, activeTurn(started), err)
		}
		if last > 0 && last <= t.from.Seq { // the client has everything
			return s.writeClosed(w, r, t, func(f *frames) error { return f.sendDone(false) })
		}
	}
	return s.streamTail(w, r, t)
}

// endOfTurn returns the seq of a turn's last event, 0 if the turn has not ended.
func (s *api) endOfTurn(r *call.Request, started turn.Started) (int64, error) {
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	t, _, err := s.Sessions.Answer(ctx, r.Caller.Workspace.ID, started.Turn)
	if err != nil || t.EndSeq == nil {
		return 0, err
	}
	return *t.EndSeq, nil
}

// queued is the response to a message with a callback.
type queued struct {
	SessionID  uuid.UUID `json:"session_id"`
	TurnID     uuid.UUID `json:"turn_id"`
	CallbackID uuid.UUID `json:"callback_id"`
	Status     string    `json:"status"`
	EventsURL  string    `json:"events_url"`
	CancelURL  string    `json:"cancel_url"`
}

// writeAccepted responds with 202.
func (s *api) writeAccepted(w http.ResponseWriter, r *call.Request, started turn.Started) error {
	t := activeTurn(started)
	r.Link(s.Server, t)
	w.Header().Set("Location", t.EventsURL)
	return server.WriteData(w, http.StatusAccepted, queued{started.Session, started.Turn, started.Callback, "queued", t.EventsURL,
		t.CancelURL})
}
