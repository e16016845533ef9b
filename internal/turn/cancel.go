package turn

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/crashpoint"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/origin"
	"github.com/parley-server/parley/internal/session"
)

// haltWait is how long a cancel call waits for the worker to confirm its stop.
const haltWait = time.Second

// Cancel ends a session's turn in progress and those lined up behind it, so that a repeated cancel
// finds nothing to end. Its response and the log agree: after Canceled true, the log contains error
// canceled and done, and nothing after them.
func (s *Service) Cancel(ctx context.Context, workspace, id uuid.UUID) (Canceled, error) {
	if _, err := s.cfg.Sessions.Head(ctx, workspace, id); err != nil {
		return Canceled{}, err
	}
	news, stop := s.cfg.EventLog.Watch(id)
	defer stop()
	var ended []session.Turn
	err := s.cfg.Sessions.Update(ctx, id, func(tx *session.Tx) (err error) {
		ended, err = s.endAll(ctx, tx, "The turn was canceled.")
		return err
	})
	if err != nil || len(ended) == 0 {
		return Canceled{}, err
	}
	crashpoint.Hit("cancel.after_mark_before_signal")
	if session.State(ended[0].State) != session.Running {
		return Canceled{Canceled: true}, nil
	}
	return Canceled{Canceled: true, HaltDeferred: !s.awaitHalt(ctx, ended[0], news)}, nil
}

// CancelTurn ends one turn of a workspace, in progress or lined up; those behind it continue. A
// turn that has ended is not an error. A turn that the workspace does not have is
// session.ErrNoTurn.
func (s *Service) CancelTurn(ctx context.Context, workspace, id uuid.UUID) (Canceled, error) {
	v, err := s.cfg.Sessions.Turn(ctx, workspace, id)
	if err != nil {
		return Canceled{}, err
	}
	news, stop := s.cfg.EventLog.Watch(v.Turn.SessionID)
	defer stop()
	var was session.Turn
	ended := false
	err = s.cfg.Sessions.Update(ctx, v.Turn.SessionID, func(tx *session.Tx) (err error) {
		if was, err = tx.TurnByID(ctx, id); err != nil {
			return err
		}
		if !was.State.IsActive() {
			return nil
		}
		f := event.Canceled.Failure("The turn was canceled.")
		ended, err = s.endTurn(ctx, tx, was, session.Ending{Trigger: session.Cancel, Failure: &f, Halted: was.State != session.Running,
			By: origin.JSON(ctx)})
		return err
	})
	if err != nil || !ended {
		return Canceled{}, err
	}
	if was.State != session.Running {
		return Canceled{Canceled: true}, nil
	}
	return Canceled{Canceled: true, HaltDeferred: !s.awaitHalt(ctx, was, news)}, nil
}

// endAll cancels the session's turn in progress and then each next one until none is left. It
// returns the turns as they were.
func (s *Service) endAll(ctx context.Context, tx *session.Tx, why string) (ended []session.Turn, err error) {
	f := event.Canceled.Failure(why)
	for {
		t, ok, err := tx.ActiveTurn(ctx)
		if err != nil || !ok {
			return ended, err
		}
		ok, err = s.endTurn(ctx, tx, t, session.Ending{Trigger: session.Cancel, Failure: &f, Halted: t.State != session.Running,
			By: origin.JSON(ctx)})
		if err == nil && !ok {
			err = fmt.Errorf("turn %s cannot be canceled", t.ID)
		}
		if err != nil {
			return nil, err
		}
		ended = append(ended, t)
	}
}

// awaitHalt reports whether the worker of a cancelled turn confirms in time that it
// has stopped.
func (s *Service) awaitHalt(ctx context.Context, t session.Turn, news <-chan struct{}) bool {
	ctx, cancel := context.WithTimeout(ctx, haltWait)
	defer cancel()
	if a := s.haltAttempt(t.ID); a != nil {
		select {
		case <-a.gone:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for {
		if now, err := s.cfg.Sessions.TurnByID(ctx, t.ID); err == nil && now.HaltedAt != nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-news:
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// haltAttempt stops the worker of an ended turn if it runs in this process: a process receives no
// notification of its own changes.
func (s *Service) haltAttempt(turn uuid.UUID) *attempt {
	a := s.findAttempt(turn)
	if a != nil {
		a.cancel(eventlog.ErrLeaseLost)
	}
	return a
}
