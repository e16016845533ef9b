package turn

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/callback"
)

// parkTurn stores a question and ends the attempt. No goroutine and no worker waits for the answer.
func (s *Service) parkTurn(ctx context.Context, t session.Turn, a *attempt, ask event.InputRequired) error {
	ask.ApprovalID = uuid.Must(uuid.NewV7())
	switch ask.What {
	case event.InputApproval:
		ask.DecideURL = fmt.Sprintf("%s/api/workspaces/%s/approvals/%s/decide", s.cfg.Base, t.WorkspaceID, ask.ApprovalID)
	case event.InputSecret:
		ask.SecretURL = fmt.Sprintf("%s/api/v1/workspaces/%s/approvals/%s/secret", s.cfg.Base, t.WorkspaceID, ask.ApprovalID)
	}
	err := s.cfg.Sessions.Update(ctx, t.SessionID, func(tx *session.Tx) error {
		if err := s.nameApprover(ctx, tx, t, &ask); err != nil {
			return err
		}
		asked, ok, err := tx.ParkTurn(ctx, a.lease, time.Since(a.began), ask, s.cfg.Window)
		if err != nil {
			return err
		}
		if !ok {
			return eventlog.ErrLeaseLost
		}
		_, err = s.river.InsertTx(ctx, tx.Tx, expiryArgs{Approval: ask.ApprovalID, Session: t.SessionID, Turn: t.ID},
			&river.InsertOpts{ScheduledAt: asked.At.Add(s.cfg.Window)})
		if err != nil {
			return fmt.Errorf("insert job: %w", err)
		}
		return s.reportEvent(ctx, tx, t, callback.InputRequired)
	})
	if err != nil {
		return err
	}
	return errParked
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

// Work denies an unanswered question. If a job runs early, it leaves the question to the reaper.
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
		ok, err := tx.ExpireQuestion(ctx, a.TurnID, event.Decision{ApprovalID: approval, What: a.Kind})
		if err != nil || !ok {
			return err
		}
		return s.insertJob(ctx, tx, a.TurnID)
	})
}

// expireOverdue expires the questions that no job has expired.
func (s *Service) expireOverdue(ctx context.Context) error {
	rows, err := s.q.ApprovalsOverdue(ctx)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := s.expireQuestion(ctx, r.SessionID, r.ID); err != nil {
			return err
		}
	}
	return nil
}
