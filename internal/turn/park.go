package turn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"github.com/parley-server/parley/internal/crashpoint"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/callback"
)

// parkTurn stores a question and ends the attempt. No goroutine and no worker waits for the answer.
func (s *Service) parkTurn(ctx context.Context, t session.Turn, a *attempt, ask event.Question) error {
	err := s.cfg.Sessions.Update(ctx, t.SessionID, func(tx *session.Tx) error {
		ask, calls, err := s.addressQuestion(ctx, tx, t, ask)
		if err != nil {
			return err
		}
		asked, ok, err := tx.ParkTurn(ctx, a.lease, time.Since(a.began), ask, s.cfg.Window)
		if err != nil {
			return err
		}
		if !ok {
			return eventlog.ErrLeaseLost
		}
		if len(calls) > 0 {
			if resumed, err := tx.AwaitResults(ctx, t.ID, ask, calls); err != nil {
				return err
			} else if resumed {
				return s.insertJob(ctx, tx, t.ID)
			}
		}
		id, kind := ask.Wait()
		_, err = s.river.InsertTx(ctx, tx.Tx, expiryArgs{Approval: id, Session: t.SessionID, Turn: t.ID},
			&river.InsertOpts{ScheduledAt: asked.At.Add(s.cfg.Window)})
		if err != nil {
			return fmt.Errorf("insert job: %w", err)
		}
		if kind == event.InputResult { // the caller can do nothing
			return nil
		}
		return s.reportEvent(ctx, tx, t, callback.InputRequired)
	})
	if err != nil {
		return err
	}
	crashpoint.Hit("approval.after_event_before_release")
	return errParked
}

// addressQuestion adds an id and the address for the answer to a question. calls are those whose
// results the turn waits for.
func (s *Service) addressQuestion(
	ctx context.Context, tx *session.Tx, t session.Turn, ask event.Question,
) (_ event.Question, calls []event.PendingCall, err error) {
	id := uuid.Must(uuid.NewV7())
	api := fmt.Sprintf("%s/api/v1/workspaces/%s", s.cfg.Base, t.WorkspaceID)
	switch q := ask.(type) {
	case event.InputRequired:
		q.ApprovalID = id
		switch q.What {
		case event.InputApproval:
			q.DecideURL = fmt.Sprintf("%s/api/workspaces/%s/approvals/%s/decide", s.cfg.Base, t.WorkspaceID, id)
		case event.InputSecret:
			q.SecretURL = fmt.Sprintf("%s/approvals/%s/secret", api, id)
		}
		err := s.nameApprover(ctx, tx, t, &q)
		return q, nil, err
	case event.ToolRequired:
		q.ApprovalID, q.ReplyURL = id, fmt.Sprintf("%s/sessions/%s/tool-results", api, t.SessionID)
		return q, q.Calls, nil
	case event.ToolLater:
		q.ApprovalID = id
		return q, q.Calls, nil
	case event.ConnectRequired:
		q.ApprovalID = id
		q.ConnectURL, err = s.connectLink(ctx, tx, t, q)
		return q, nil, err
	}
	return nil, nil, fmt.Errorf("a question of the kind %s", ask.Kind())
}

// expiryWorkers is how many waits this process expires at once.
const expiryWorkers = 4

// expiryArgs is the job that ends a wait. Besides, every replica searches for overdue questions:
// the time is a column, not a job.
type expiryArgs struct {
	Approval uuid.UUID `json:"approval_id"`
	Session  uuid.UUID `json:"session_id"`
	Turn     uuid.UUID `json:"turn_id"`
}

func (expiryArgs) Kind() string { return "approval_expiry" }

type expiryWorker struct {
	river.WorkerDefaults[expiryArgs]
	s *Service
}

// Work expires an unanswered question. If a job runs early, it leaves the question to the reaper.
func (w *expiryWorker) Work(ctx context.Context, job *river.Job[expiryArgs]) error {
	return w.s.expireQuestion(ctx, job.Args.Session, job.Args.Approval)
}

// expireQuestion answers an expired question without a decider.
func (s *Service) expireQuestion(ctx context.Context, id, approval uuid.UUID) error {
	return s.cfg.Sessions.Update(ctx, id, func(tx *session.Tx) error {
		a, err := tx.Approval(ctx, approval)
		if err != nil {
			return err
		}
		return s.storeExpiry(ctx, tx, a)
	})
}

// storeExpiry answers a question without a decider if its time is over and it has no answer.
func (s *Service) storeExpiry(ctx context.Context, tx *session.Tx, a session.Approval) error {
	ok, err := tx.ExpireQuestion(ctx, a.TurnID, event.Decision{ApprovalID: a.ApprovalID, What: a.Kind})
	if err != nil || !ok {
		return err
	}
	crashpoint.Hit("timeout.before_commit")
	return s.insertJob(ctx, tx, a.TurnID)
}

// expireOverdue expires the questions that no job has expired. One that cannot be answered does not
// delay the others.
func (s *Service) expireOverdue(ctx context.Context) error {
	rows, err := s.q.ApprovalsOverdue(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, r := range rows {
		failed = append(failed, s.expireQuestion(ctx, r.SessionID, r.ID))
	}
	return errors.Join(failed...)
}
