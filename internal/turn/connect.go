package turn

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/toolset"
)

// ConnectPath is the path of links, which end with their code.
const ConnectPath = "/connect/"

// connectLink makes the link of a question. It works as long as the question waits.
func (s *Service) connectLink(ctx context.Context, tx *session.Tx, t session.Turn, q event.ConnectRequired) (string, error) {
	caller, err := s.cfg.Toolset.TurnHolderIn(ctx, tx.Tx, t.ID)
	if err != nil {
		return "", err
	}
	_, code, err := s.cfg.Toolset.CreateLinkIn(ctx, tx.Tx, toolset.NewLink{Workspace: t.WorkspaceID, Server: q.Server, Caller: caller,
		Session: t.SessionID, Approval: q.ApprovalID, Grant: q.Grant, Scopes: q.Scopes, Life: s.cfg.Window})
	if fault.From(err) != nil { // the entry was removed since, and continueConnected answers
		return "", nil
	}
	return s.cfg.Base + ConnectPath + code, err
}

// Connect stores the grant of a link and continues the turns that wait for it. The link does not work
// any more.
func (s *Service) Connect(ctx context.Context, link toolset.Link, g toolset.Grant) error {
	err := pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		if err := s.cfg.Toolset.EndLink(ctx, tx, link.ID); err != nil {
			return err
		}
		return s.cfg.Toolset.PutGrant(ctx, tx, g)
	})
	if err != nil {
		return err
	}
	if err := s.continueConnected(ctx); err != nil {
		s.log.WarnContext(ctx, "turns that wait for a grant could not be continued at once", "err", err)
	}
	return nil
}

// continueConnected continues the turns whose questions for a grant can be answered. Every replica does
// so once a second as long as turns wait: the rows decide, so neither a grant that arrives while a turn
// parks nor one whose replica has died since is missed.
func (s *Service) continueConnected(ctx context.Context) error {
	over, err := s.q.ToolWaitsOver(ctx)
	if err != nil {
		return fmt.Errorf("find questions for a grant that can be answered: %w", err)
	}
	var failed []error
	for _, q := range over {
		err := s.cfg.Sessions.TryUpdate(ctx, q.SessionID, func(tx *session.Tx) error {
			return s.answerConnect(ctx, tx, q.ID, event.Provided)
		})
		failed = append(failed, unlessBusy(err, "answer question", q.ID))
	}
	return errors.Join(failed...)
}

// DeclineConnection ends a link whose user has not granted access, with the answer to the question of
// its turn.
func (s *Service) DeclineConnection(ctx context.Context, link toolset.Link) error {
	if !link.IsForTurn() {
		return pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error { return s.cfg.Toolset.EndLink(ctx, tx, link.ID) })
	}
	return s.cfg.Sessions.Update(ctx, link.Session, func(tx *session.Tx) error {
		if err := s.cfg.Toolset.EndLink(ctx, tx.Tx, link.ID); err != nil {
			return err
		}
		return s.answerConnect(ctx, tx, link.Approval, event.Skipped)
	})
}

// linkDecider is the name under which a link answers a question. No API key has it.
const linkDecider = "link"

// answerConnect answers the question of a turn that waits for a grant, if it still does.
func (s *Service) answerConnect(ctx context.Context, tx *session.Tx, approval uuid.UUID, outcome event.Outcome) error {
	a, err := tx.Approval(ctx, approval)
	if err != nil {
		return fmt.Errorf("find the question of a link: %w", err)
	}
	ok, err := tx.DecideQuestion(ctx, a.TurnID,
		event.Decision{ApprovalID: approval, What: event.InputConnect, Outcome: outcome, Key: linkDecider})
	if err != nil || !ok {
		return err
	}
	return s.insertJob(ctx, tx, a.TurnID)
}
