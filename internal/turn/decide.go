package turn

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/vault"
)

// Answer is a person's answer to a question of a turn.
type Answer struct {
	Approval uuid.UUID
	Outcome  event.Outcome // Allowed or Denied; Provided or Skipped
	Key      string        // id of the API key that answers
	Scopes   []string      // of that key, with those that they include
	Actor    string        // the person behind the key, as its holder names them; "": unknown
	Reason   string        // of a denial, for the model
	Pattern  string        // with Allowed: added to the allow-list
	Value    vault.Value   // with Provided
}

// kind is the kind of question that the answer fits.
func (a Answer) kind() event.Input {
	if a.Outcome == event.Provided || a.Outcome == event.Skipped {
		return event.InputSecret
	}
	return event.InputApproval
}

// Decided is how a question stands.
type Decided struct {
	session.Approval
	Already bool // it was answered so before
}

// Decide answers a question. The first answer in time stands: the same again is no
// error, another is APPROVAL_ALREADY_DECIDED, and one that is late APPROVAL_EXPIRED.
func (s *Service) Decide(ctx context.Context, workspace uuid.UUID, a Answer) (Decided, error) {
	asked, err := s.cfg.Sessions.Approval(ctx, workspace, a.Approval)
	if err != nil {
		return Decided{}, err
	}
	if asked.Kind != a.kind() { // the other kind has another address, and needs another scope
		return Decided{}, fault.New(fault.ApprovalNotFound, "No %s request %s in this workspace.", a.kind(), a.Approval)
	}
	var d Decided
	err = s.cfg.Sessions.Update(ctx, asked.SessionID, func(tx *session.Tx) error {
		won, err := s.answer(ctx, tx, asked, a)
		if err != nil {
			return err
		}
		d.Already = !won
		d.Approval, err = tx.Approval(ctx, a.Approval)
		return err
	})
	if err == nil && d.Already {
		err = standing(d.Approval, a)
	}
	if err == nil && d.Already && a.Outcome == event.Provided && len(a.Value.Reveal()) > 0 { // AG-UI resumes without a value
		err = s.sameValue(ctx, workspace, d.Approval, a.Value)
	}
	return d, err
}

// sameValue checks that a secret that was provided before has the value that is provided again: a
// caller must not take a value that was not stored for stored.
func (s *Service) sameValue(ctx context.Context, workspace uuid.UUID, provided session.Approval, value vault.Value) error {
	var ask event.InputRequired
	if err := json.Unmarshal(provided.Request, &ask); err != nil {
		return fmt.Errorf("read the question: %w", err)
	}
	opened, err := s.cfg.Vault.Open(ctx, workspace, []string{ask.KeyName})
	if err != nil && fault.From(err) == nil {
		return fmt.Errorf("open the secret that was provided: %w", err)
	}
	if len(opened) == 1 && subtle.ConstantTimeCompare(opened[0].Value.Reveal(), value.Reveal()) == 1 {
		return nil
	}
	return &fault.Error{Code: fault.ApprovalAlreadyDecided, Detail: fault.Detail{Status: provided.Status},
		Message: fmt.Sprintf("%s was provided before, with another value. The first value stands; an administrator changes it with parley secrets set.", ask.KeyName)}
}

// answer writes the answer and all that comes with it. ok is false where there is one.
func (s *Service) answer(ctx context.Context, tx *session.Tx, asked session.Approval, a Answer) (ok bool, err error) {
	var ask event.InputRequired
	if asked.Request != nil {
		if err := json.Unmarshal(asked.Request, &ask); err != nil {
			return false, fmt.Errorf("read the question: %w", err)
		}
	}
	if err := s.checkApprover(ctx, tx, asked.TurnID, a, ask.Operations); err != nil {
		return false, err
	}
	if a.Pattern != "" {
		if err := covers(a.Pattern, ask.Operations); err != nil {
			return false, err
		}
	}
	ok, err = tx.Decide(ctx, asked.TurnID, event.Decision{ApprovalID: a.Approval, What: asked.Kind, Outcome: a.Outcome, Key: a.Key, Actor: a.Actor, Reason: a.Reason, Pattern: a.Pattern})
	if err != nil || !ok {
		return false, err
	}
	if a.Pattern != "" {
		rule := permission.Rule{Workspace: tx.Session.WorkspaceID, Approval: a.Approval, Key: a.Key, Pattern: a.Pattern}
		if err := s.cfg.Permissions.Add(ctx, tx.Tx, rule); err != nil {
			return false, err
		}
	}
	if a.Outcome == event.Provided {
		if err := s.cfg.Vault.Provide(ctx, tx.Tx, tx.Session.WorkspaceID, ask.KeyName, a.Value, a.Key); err != nil {
			return false, err
		}
	}
	return true, s.insertJob(ctx, tx, asked.TurnID)
}

// covers checks that a pattern fits something that is being approved.
func covers(pattern string, ops []event.Operation) error {
	p, err := permission.Parse(pattern)
	if err != nil {
		return err
	}
	for _, op := range ops {
		if p.Matches(op.Tool, op.Input) {
			return nil
		}
	}
	return &fault.Error{Code: fault.InvalidAllowlistPattern, Param: "allowlist_pattern",
		Message: "allowlist_pattern matches none of the operations that are being approved. Take an operation's suggested_pattern, or leave it out."}
}

// standing returns the error for an answer that was not the first: nil if it is equal to the first.
func standing(a session.Approval, wanted Answer) error {
	switch a.Status {
	case string(wanted.Outcome):
		if wanted.Pattern == "" || a.Pattern != nil && *a.Pattern == wanted.Pattern {
			return nil
		}
		return &fault.Error{Code: fault.ApprovalAlreadyDecided, Detail: fault.Detail{Status: a.Status},
			Message: "This was allowed before, without this allowlist_pattern, which is not added. The first answer stands."}
	case string(event.Expired):
		return &fault.Error{Code: fault.ApprovalExpired, Message: "The time to answer was over at " + a.ExpiresAt.Format("15:04:05") + " UTC. It counts as denied.",
			Detail: fault.Detail{Status: a.Status}}
	case "canceled":
		return &fault.Error{Code: fault.ApprovalAlreadyDecided, Message: "The turn was canceled; nothing waits for this answer any more.", Detail: fault.Detail{Status: a.Status}}
	}
	return &fault.Error{Code: fault.ApprovalAlreadyDecided, Message: fmt.Sprintf("This was answered before: %s. The first answer stands.", a.Status),
		Detail: fault.Detail{Status: a.Status}}
}
