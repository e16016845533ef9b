package server

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/turn"
)

// AwaitTurn follows a turn until it ends or visit returns one of its events, which AwaitTurn then
// returns. The events of a turn that has ended may be removed: its outcome is still stored.
func (s *Server) AwaitTurn(ctx context.Context, from eventlog.From, turn uuid.UUID, visit func([]event.Event) (*event.Event,
	error)) (*event.Event, error) {
	for evs, err := range s.Events(ctx, from, turn) {
		if errors.Is(err, eventlog.ErrGone) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if ev, err := visit(evs); ev != nil || err != nil {
			return ev, err
		}
	}
	return nil, nil
}

// TurnOutcome returns the outcome of a turn that has ended.
func (s *Server) TurnOutcome(ctx context.Context, c Caller, id uuid.UUID) (turn.Outcome, error) {
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	outcome, ended, err := s.Turns.Outcome(ctx, c.Workspace.ID, id)
	if err == nil && !ended {
		err = errors.New("the turn has ended without an answer")
	}
	return outcome, err
}

// WaitInterruption returns why this server cannot continue to wait for a turn whose message is
// stored, as the end of a sentence about it; "" if err is another error. ctx is the request's.
func (s *Server) WaitInterruption(ctx context.Context, session, turn uuid.UUID, err error) string {
	switch {
	case fault.From(err) != nil:
		return ""
	case errors.Is(err, context.Canceled) || ctx.Err() != nil: // the client may also have left
		return "is stopping"
	case pgerr.IsTransient(err):
		s.Log.WarnContext(ctx, "a call lost the database after its message was stored", "session", session, "turn", turn, "err", err)
		return "has lost its database"
	}
	return ""
}
