package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/turn"
)

// blocking is the body of a blocking answer.
type blocking struct {
	Success    bool            `json:"success"`
	Output     *string         `json:"output"`
	SessionID  uuid.UUID       `json:"session_id"`
	References json.RawMessage `json:"references,omitempty"`
	Error      *string         `json:"error"`
}

// block waits for the end of a turn.
func (s *server) block(w http.ResponseWriter, r *request, started turn.Started) error {
	var answer *session.Message
	var err error
	seen := active(started)
	if started.Replayed {
		if answer, err = s.outcome(r.Context(), started); err != nil {
			return s.accepted(r, seen, err)
		}
	}
	if answer == nil {
		if answer, err = s.await(r, started, seen); err != nil {
			return s.accepted(r, seen, err)
		}
	}
	body := blocking{Success: answer.Error == nil, SessionID: started.Session, References: answer.References, Error: answer.Error}
	if body.Success {
		body.Output = answer.Content
	}
	return writeJSON(w, http.StatusOK, body)
}

// await follows a turn to its end, and keeps in seen how far it came.
func (s *server) await(r *request, started turn.Started, seen *session.ActiveTurn) (*session.Message, error) {
	ctx, stop := s.cfg.Keys.While(r.Context(), r.caller.Key)
	defer stop()
	for evs, err := range s.events(ctx, &tail{from: started.From, turn: started.Turn}) {
		if errors.Is(err, apikey.ErrDead) {
			return nil, apikey.Invalid()
		}
		if err != nil {
			return nil, fmt.Errorf("wait for the turn: %w", err)
		}
		for i := range evs {
			seen.LastSeq = evs[i].Seq
			if evs[i].Kind == event.KindStarted {
				seen.Status = session.Running
			}
		}
	}
	answer, err := s.outcome(ctx, started)
	if err == nil && answer == nil {
		err = errors.New("the turn has ended without an answer")
	}
	return answer, err
}

// active is what is known of a turn when its message was stored.
func active(started turn.Started) *session.ActiveTurn {
	return &session.ActiveTurn{TurnID: started.Turn, SessionID: started.Session, Status: session.Queued, LastSeq: started.From.Seq}
}

// accepted says of a call that cannot be answered any more that its message was
// stored: who only hears "try again" sends it twice.
func (s *server) accepted(r *request, t *session.ActiveTurn, err error) error {
	why := "is stopping"
	switch {
	case fault.From(err) != nil:
		return err
	case errors.Is(err, context.Canceled) || r.Context().Err() != nil: // the caller is gone, or the service is stopping
	case unavailable(err):
		why = "has lost its database"
		s.cfg.Log.WarnContext(r.Context(), "a call lost the database after its message was stored", "session", t.SessionID, "turn", t.TurnID, "err", err)
	default:
		return err
	}
	again := "Do not send it again: it had no Idempotency-Key, and would start a second turn"
	if r.Header.Get("Idempotency-Key") != "" {
		again = "Sent again with the same Idempotency-Key it finds this turn"
	}
	s.link(r, t)
	return &fault.Error{Code: fault.Unavailable, Detail: fault.Detail{Turn: t}, Message: fmt.Sprintf(
		"The message was accepted and its turn goes on in session %s, but this server %s and cannot wait for it. Read the answer at %s. %s.",
		t.SessionID, why, t.EventsURL, again)}
}
