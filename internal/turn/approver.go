package turn

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/permission"
)

// checkApprover checks that a key may allow operations of a turn: it has the required scopes, and
// the rules of the workspace accept it. Every key may deny.
func (s *Service) checkApprover(ctx context.Context, tx *session.Tx, turn uuid.UUID, a Answer, ops []event.Operation) error {
	if a.Outcome != event.Allowed {
		return nil
	}
	if err := checkScopes(a, ops); err != nil {
		return err
	}
	rules, err := s.q.WithTx(tx.Tx).ApprovalRules(ctx, turn)
	if err != nil {
		return fmt.Errorf("read the rules of approvals: %w", err)
	}
	if rules.SeparateApprover {
		if err := s.checkSender(ctx, tx, rules.Sender, a); err != nil {
			return err
		}
	}
	if rules.AdminPatterns && a.Pattern != "" {
		return &fault.Error{Code: fault.InvalidAllowlistPattern, Param: "allowlist_pattern",
			Message: "This workspace takes allow-list patterns from administrators only. Leave allowlist_pattern out to allow the calls once."}
	}
	return nil
}

// nameApprover adds to a question the requirements for a key that allows it, according to the
// current rules. The decision is checked against the rules at its own time.
func (s *Service) nameApprover(ctx context.Context, tx *session.Tx, t session.Turn, ask *event.InputRequired) error {
	if ask.What != event.InputApproval {
		return nil
	}
	for i := range ask.Operations {
		ask.Operations[i].RequiredScope = permission.RequiredScope(ask.Operations[i].Tool)
	}
	rules, err := s.q.WithTx(tx.Tx).ApprovalRules(ctx, t.ID)
	if err != nil {
		return fmt.Errorf("read the rules of approvals: %w", err)
	}
	ask.SeparateApprover = rules.SeparateApprover
	return nil
}

// checkScopes rejects a key that lacks the scopes for the operations it allows.
func checkScopes(a Answer, ops []event.Operation) error {
	for _, op := range ops {
		if scope := permission.RequiredScope(op.Tool); scope != "" && !slices.Contains(a.Scopes, scope) {
			return &fault.Error{Code: fault.InsufficientScope, Detail: fault.Detail{RequiredScope: scope},
				Message: fmt.Sprintf("This key lacks the scope %s, so it cannot allow %s. It can deny it.", scope, op.Tool)}
		}
	}
	return nil
}

// checkSender rejects the key or the member that sent the message of the turn. A member and the
// member's personal tokens count as one. So do keys that replaced each other by rotation, in both
// directions: the older one works until its overlap ends.
func (s *Service) checkSender(ctx context.Context, tx *session.Tx, sender string, a Answer) error {
	q, workspace := s.q.WithTx(tx.Tx), tx.WorkspaceID()
	same, err := q.ApproverIsSameMember(ctx, workspace, sender, a.Key)
	if err != nil {
		return fmt.Errorf("compare the approver with the sender: %w", err)
	}
	for _, pair := range [][2]string{{sender, a.Key}, {a.Key, sender}} {
		if same {
			break
		}
		if same, err = q.APIKeySucceeds(ctx, pair[1], workspace, pair[0]); err != nil {
			return fmt.Errorf("compare the approver with the sender: %w", err)
		}
	}
	if !same {
		return nil
	}
	s.log.InfoContext(ctx, "approval rejected: the key sent the message", "session", tx.SessionID(), "approval", a.Approval, "key", a.Key)
	return fault.New(fault.ApproverIsSender,
		"In this workspace the key that sent a message cannot allow what the agent asks. It can deny it. Use another key to allow it.")
}
