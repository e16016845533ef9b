package server

import (
	"context"
	"crypto/sha256"
	"net/http"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/turn"
)

// retryTime is the time after its first arrival in which clients retry a request automatically.
const retryTime = 10 * time.Minute

// RetriedTurn returns the turn that an earlier copy of the request started in its session, for a
// client that marks the request as a retry; ok is false if there is none, or if its answer was
// delivered.
func (s *Server) RetriedTurn(w http.ResponseWriter, r *Request, req turn.Request, raw []byte) (rd Reading, ok bool, err error) {
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	hash := sha256.Sum256(raw)
	id, ok, err := s.Sessions.FindRetried(ctx, session.Retry{Workspace: r.Caller.Workspace.ID, Key: r.Caller.Key, Hash: hash[:],
		Session: req.Session, CallerID: req.CallerID, Within: retryTime})
	if err != nil || !ok {
		return rd, false, err
	}
	t, _, err := s.Sessions.Answer(ctx, r.Caller.Workspace.ID, id)
	if err != nil {
		return rd, false, err
	}
	w.Header().Set("Idempotent-Replayed", "true")
	return readingOf(t), true, nil
}

// MarkDelivered records that the client received the whole answer, so that an equal request later
// starts a new turn. A failure to record it is harmless.
func (s *Server) MarkDelivered(r *Request, rd Reading) {
	if r.Context().Err() != nil { // the caller has left, and may have missed the end
		return
	}
	ctx, cancel := s.Brief(context.WithoutCancel(r.Context()))
	defer cancel()
	if err := s.Sessions.MarkDelivered(ctx, rd.Turn); err != nil {
		s.Log.WarnContext(ctx, "delivery of an answer not recorded", "session", rd.Session(), "turn", rd.Turn, "err", err)
	}
}

// RepeatedTurn returns the turn that an earlier copy of a message started under its
// Idempotency-Key; ok is false if there is none.
func (s *Server) RepeatedTurn(ctx context.Context, c Caller, req turn.Request, raw []byte) (rd Reading, ok bool, err error) {
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	before, ok, err := s.Turns.Repeated(ctx, c.Request(req, raw))
	if fault.From(err) != nil { // another message has that key
		return rd, false, nil
	}
	return Reading{Turn: before.Turn, From: before.From}, ok, err
}
