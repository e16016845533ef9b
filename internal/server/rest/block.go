package rest

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/rest/call"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/turn"
)

// writeOutcome waits for the end of a turn, or until it needs input.
func (s *api) writeOutcome(w http.ResponseWriter, r *call.Request, started turn.Started) error {
	seen := activeTurn(started)
	outcome, err := s.awaitOutcome(r, started, seen)
	if err != nil {
		return s.acceptedError(r, started.From.Seq, seen, err)
	}
	server.CompleteLinks(s.Base(r.Request), outcome.Attachments)
	return server.WriteJSON(w, http.StatusOK, outcome)
}

// awaitOutcome follows a turn to its end or to its first question for the caller, and records its
// position in seen. A turn that is read again asks again, so a repeated call has the same response.
func (s *api) awaitOutcome(r *call.Request, started turn.Started, seen *session.ActiveTurn) (turn.Outcome, error) {
	ctx, stop := s.Keys.While(r.Context(), r.Caller.Credential())
	defer stop()
	question, err := s.AwaitTurn(ctx, started.From, started.Turn, func(evs []event.Event) (*event.Event, error) {
		for i := range evs {
			ev := &evs[i]
			seen.LastSeq = ev.Seq
			switch {
			case ev.Turn != started.Turn:
			case ev.Kind == event.KindStarted:
				seen.Status = session.Running
			case ev.Kind == event.KindInputRequired, ev.Kind == event.KindToolRequired, ev.Kind == event.KindConnect:
				return ev, nil
			}
		}
		return nil, nil
	})
	switch {
	case errors.Is(err, apikey.ErrDead):
		return turn.Outcome{}, apikey.Invalid()
	case err != nil:
		return turn.Outcome{}, fmt.Errorf("wait for the turn: %w", err)
	case question == nil:
		return s.TurnOutcome(ctx, r.Caller, started.Turn)
	}
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	return s.Turns.Asking(ctx, r.Caller.Workspace.ID, started.Turn, question.Data)
}

// activeTurn returns the state of a turn when its message was stored.
func activeTurn(started turn.Started) *session.ActiveTurn {
	return &session.ActiveTurn{TurnID: started.Turn, SessionID: started.Session, Status: session.Queued, LastSeq: started.From.Seq}
}

// acceptedError adds to an error that the message was stored, and where its answer begins. A client
// that only reads "try again" would send it twice.
func (s *api) acceptedError(r *call.Request, from int64, t *session.ActiveTurn, err error) error {
	why := s.WaitInterruption(r.Context(), t.SessionID, t.TurnID, err)
	if why == "" {
		return err
	}
	again := "Do not send it again: it had no Idempotency-Key, and would start a second turn"
	if r.Header.Get("Idempotency-Key") != "" {
		again = "Sent again with the same Idempotency-Key it finds this turn"
	}
	r.Link(s.Server, t)
	return &fault.Error{Code: fault.Unavailable, Detail: fault.Detail{Turn: t}, Message: fmt.Sprintf(
		"The message was accepted and its turn continues in session %s, but this server %s and cannot wait for it. Read the answer at "+
			"%s?replay=all&last_event_id=%d. %s.",
		t.SessionID, why, t.EventsURL, from, again)}
}
