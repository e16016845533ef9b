package turn

import (
	"context"
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
	caller, err := s.cfg.Toolset.TurnHolder(ctx, t.ID)
	if err != nil {
		return "", err
	}
	_, code, err := s.cfg.Toolset.CreateLinkIn(ctx, tx.Tx, toolset.NewLink{Workspace: t.WorkspaceID, Server: q.Server, Caller: caller,
		Session: t.SessionID, Approval: q.ApprovalID, Life: s.cfg.Window})
	if fault.From(err) != nil { // the entry was removed since, so the question only expires
		return "", nil
	}
	return s.cfg.Base + ConnectPath + code, err
}

// Connect stores the grant of a link and continues the turns that wait for it. The link does not work
// any more.
func (s *Service) Connect(ctx context.Context, link toolset.Link, g toolset.Grant) error {
	waiting, err := s.cfg.Toolset.Waiting(ctx, link.Server, link.Holder)
	if err != nil {
		return err
	}
	err = s.endLink(ctx, link, event.Provided, func(tx pgx.Tx) error { return s.cfg.Toolset.PutGrant(ctx, tx, g) })
	if err != nil {
		return err
	}
	for _, w := range waiting {
		if w.Approval == link.Approval {
			continue
		}
		err := s.cfg.Sessions.Update(ctx, w.Session, func(tx *session.Tx) error { return s.answerConnect(ctx, tx, w.Approval, event.Provided) })
		if err != nil {
			return err
		}
	}
	return nil
}

// DeclineConnection ends a link whose user has not granted access.
func (s *Service) DeclineConnection(ctx context.Context, link toolset.Link) error {
	return s.endLink(ctx, link, event.Skipped, func(pgx.Tx) error { return nil })
}

// endLink ends a link in the transaction of change, with the answer to the question of its turn.
func (s *Service) endLink(ctx context.Context, link toolset.Link, outcome event.Outcome, change func(pgx.Tx) error) error {
	end := func(tx pgx.Tx) error {
		if err := change(tx); err != nil {
			return err
		}
		return s.cfg.Toolset.EndLink(ctx, tx, link.ID)
	}
	if !link.IsForTurn() {
		return pgx.BeginFunc(ctx, s.cfg.Pool, end)
	}
	return s.cfg.Sessions.Update(ctx, link.Session, func(tx *session.Tx) error {
		if err := end(tx.Tx); err != nil {
			return err
		}
		return s.answerConnect(ctx, tx, link.Approval, outcome)
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
	ok, err := tx.DecideQuestion(ctx, a.TurnID, event.Decision{ApprovalID: approval, What: event.InputConnect, Outcome: outcome, Key: linkDecider})
	if err != nil || !ok {
		return err
	}
	return s.insertJob(ctx, tx, a.TurnID)
}
