package turn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/workspace"
)

// checkPause rejects messages to agents that an administrator has stopped. The row of the workspace
// is less than a second old, and so is the pulse; a message that passes waits in the queue, because
// claims read the rows themselves.
func (s *Service) checkPause(w workspace.Workspace) error {
	if w.Paused.At == nil && !s.cfg.Pulse.IsPaused() {
		return nil
	}
	return &fault.Error{Code: fault.AgentsStopped, Detail: fault.Detail{RetryAfter: 30 * time.Second},
		Message: "An administrator has stopped the agents. Nothing was stored. Send the message again when they run."}
}

// stopPaused ends the running turns of paused workspaces, on whichever replica they run. Turns that
// are queued or wait for an answer stay.
func (s *Service) stopPaused(ctx context.Context) error {
	turns, err := s.q.TurnsPaused(ctx)
	if err != nil {
		return fmt.Errorf("list turns of paused workspaces: %w", err)
	}
	var failed []error
	for _, t := range turns {
		f := event.AgentsStopped.Failure("An administrator has stopped the agents.")
		err := s.cfg.Sessions.TryUpdate(ctx, t.SessionID, func(tx *session.Tx) error {
			now, err := tx.TurnByID(ctx, t.ID)
			if err != nil || now.State != session.Running {
				return err
			}
			_, err = s.endTurn(ctx, tx, now, session.Ending{Trigger: session.Cancel, Failure: &f})
			return err
		})
		if err == nil {
			s.log.InfoContext(ctx, "turn stopped by an administrator", "session", t.SessionID, "turn", t.ID)
			s.haltAttempt(t.ID)
		}
		failed = append(failed, unlessBusy(err, "stop turn", t.ID))
	}
	return errors.Join(failed...)
}
