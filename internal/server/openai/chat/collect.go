package chat

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/apikey"
)

// retryCount returns how often a client of OpenAI reports to have sent the request before; ok is
// false if it does not report it.
func retryCount(r *server.Request) (n int, ok bool) {
	n, err := strconv.Atoi(r.Header.Get("X-Stainless-Retry-Count"))
	return n, err == nil
}

// forbidRetry asks OpenAI's clients, which retry most errors, not to retry this one.
func forbidRetry(w http.ResponseWriter) { w.Header().Set("X-Should-Retry", "false") }

// collectRows feeds the rows of a reading to an encoder, for a complete answer.
func (s Service) collectRows(r *server.Request, q requestBody, rd server.Reading, p server.Encoder) error {
	ctx, stop := s.Keys.While(r.Context(), r.Caller.Key)
	defer stop()
	p.Begin()
	for rows, err := range s.TurnRows(ctx, r.Caller, rd) {
		switch {
		case errors.Is(err, apikey.ErrDead):
			return apikey.Invalid()
		case errors.Is(err, eventlog.ErrGone):
			p.Fail(server.EventsGone)
			return nil
		case err != nil:
			return s.acceptedError(r, q, rd, err)
		}
		for _, row := range rows {
			p.Row(row)
		}
	}
	return nil
}

// acceptedError adds to an error that the message was stored, and how to read its answer. A client
// that only reads "try again" would send it as a new one.
func (s Service) acceptedError(r *server.Request, q requestBody, rd server.Reading, err error) error {
	why := s.WaitInterruption(r.Context(), rd.Session(), rd.Turn, err)
	if why == "" {
		return fmt.Errorf("wait for the turn: %w", err)
	}
	t := &session.ActiveTurn{TurnID: rd.Turn, SessionID: rd.Session(), Status: session.Running, LastSeq: rd.From.Seq}
	server.Link(s.Base(r.Request), r.Caller.Workspace, t)
	remedy := "send `continue` in this chat while the agent is at it, or "
	if !q.namesChat() {
		remedy = fmt.Sprintf("send `continue` with \"session_id\":\"%s\" while the agent is at it, or ", t.SessionID)
	}
	switch {
	case q.IdempotencyKey != "":
		remedy += "send this very request again, with its Idempotency-Key."
	case q.namesChat():
		remedy += "send this very request again within ten minutes with the header X-Stainless-Retry-Count: 1, as OpenAI's clients do by " +
			"themselves. Without it the message may be taken for another."
	default:
		remedy += fmt.Sprintf("read it at %s . This chat has no name, so this request sent again is another message.", t.EventsURL)
	}
	return &fault.Error{Code: fault.Unavailable, Detail: fault.Detail{Turn: t}, Message: fmt.Sprintf(
		"The message was accepted and the agent continues to work on it, but this server %s and cannot wait for the answer. To get it, %s",
		why, remedy)}
}
