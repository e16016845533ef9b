package turn

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/crashpoint"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/vault"
)

// Answer is a user's answer to a question of a turn.
type Answer struct {
	Approval uuid.UUID
	Outcome  event.Outcome // Allowed or Denied; Provided or Skipped
	Key      string        // id of the API key that answers
	Scopes   []string      // scopes of that key, including implied ones
	Actor    string        // the user behind the key, as its holder names them; "": unknown
	Reason   string        // reason for a denial, for the model
	Pattern  string        // with Allowed: added to the allow-list
	Value    vault.Value   // with Provided
}

// questionKind returns the kind of question that the answer is for.
func (a Answer) questionKind() event.Input {
	if a.Outcome == event.Provided || a.Outcome == event.Skipped {
		return event.InputSecret
	}
	return event.InputApproval
}

// answerHints say how the questions of each kind are answered.
var answerHints = map[event.Input]string{
	event.InputApproval: " It is an approval: allow or deny it.",
	event.InputSecret:   " It is a request for a secret: provide it at its secret_url.",
	event.InputTool: " It waits for the results of the caller's own tools: post them to the reply_url of its event tool_required, " +
		"under the tool_use_id of each call.",
	event.InputConnect: " It waits for access to a tool server: open the connect_url of its event connect_required in a browser.",
}

// Decided is the state of a question after an answer.
type Decided struct {
	session.Approval
	Already bool // it already had this answer
}

// Decide answers a question. The first timely answer wins: an equal one is not an error, another
// one is APPROVAL_ALREADY_DECIDED, and a late one is APPROVAL_EXPIRED.
func (s *Service) Decide(ctx context.Context, workspace uuid.UUID, a Answer) (Decided, error) {
	asked, err := s.cfg.Sessions.Approval(ctx, workspace, a.Approval)
	if err != nil {
		return Decided{}, err
	}
	if asked.Kind != a.questionKind() { // the other kind has another address, and requires another scope
		return Decided{}, fault.New(fault.ApprovalNotFound, "No %s request %s in this workspace.%s", a.questionKind(), a.Approval,
			answerHints[asked.Kind])
	}
	var d Decided
	err = s.cfg.Sessions.Update(ctx, asked.SessionID, func(tx *session.Tx) error {
		won, err := s.storeAnswer(ctx, tx, asked, a)
		if err != nil {
			return err
		}
		if d.Already = !won; d.Already { // else "expired" could turn out wrong if the clock is set back
			if err := s.storeExpiry(ctx, tx, asked); err != nil {
				return err
			}
		}
		d.Approval, err = tx.Approval(ctx, a.Approval)
		crashpoint.Hit("decide.before_commit")
		return err
	})
	if err == nil {
		crashpoint.Hit("decide.after_commit_before_reply")
	}
	if err == nil && d.Already {
		if err = standingError(d.Approval, a); err == nil {
			err = s.cfg.Sessions.AwaitReplication(ctx)
		}
	}
	if err == nil && d.Already && a.Outcome == event.Provided && len(a.Value.Reveal()) > 0 { // AG-UI resumes without a value
		err = s.sameValue(ctx, workspace, d.Approval, a.Value)
	}
	return d, err
}

// sameValue checks that a secret provided again has the same value as before: a caller must not
// believe that another value was stored.
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
		Message: fmt.Sprintf("%s was provided before, with another value. The first value stands; "+
			"an administrator changes it with parley secrets set.", ask.KeyName)}
}

// storeAnswer stores the answer with all its effects. ok is false if the question already has an
// answer.
func (s *Service) storeAnswer(ctx context.Context, tx *session.Tx, asked session.Approval, a Answer) (ok bool, err error) {
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
		if err := checkCovered(a.Pattern, ask.Operations); err != nil {
			return false, err
		}
	}
	ok, err = tx.DecideQuestion(ctx, asked.TurnID, event.Decision{ApprovalID: a.Approval, What: asked.Kind, Outcome: a.Outcome,
		Key: a.Key, Actor: a.Actor, Reason: a.Reason, Pattern: a.Pattern})
	if err != nil || !ok {
		return false, err
	}
	if a.Pattern != "" {
		rule := permission.Rule{Workspace: tx.WorkspaceID(), Approval: a.Approval, Key: a.Key, Pattern: a.Pattern}
		if err := s.cfg.Permissions.Add(ctx, tx.Tx, rule); err != nil {
			return false, err
		}
	}
	if a.Outcome == event.Provided {
		if err := s.cfg.Vault.Provide(ctx, tx.Tx, tx.WorkspaceID(), ask.KeyName, a.Value, a.Key); err != nil {
			return false, err
		}
		crashpoint.Hit("secret.after_vault_before_resume")
	}
	return true, s.insertJob(ctx, tx, asked.TurnID)
}

// checkCovered checks that a pattern covers an operation of the approval.
func checkCovered(pattern string, ops []event.Operation) error {
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
		Message: "allowlist_pattern matches none of the operations that are being approved. " +
			"Take an operation's suggested_pattern, or leave it out."}
}

// expiredSubject names what has expired.
var expiredSubject = map[event.Input]string{event.InputApproval: "The approval", event.InputSecret: "The request for the secret",
	event.InputConnect: "The request to connect", event.InputTool: "The tool call"}

// standingError returns the error for an answer that was not the first: nil if it equals the first.
func standingError(a session.Approval, wanted Answer) error {
	switch a.Status {
	case string(wanted.Outcome):
		if wanted.Pattern == "" || a.Pattern != nil && *a.Pattern == wanted.Pattern {
			return nil
		}
		return &fault.Error{Code: fault.ApprovalAlreadyDecided, Detail: fault.Detail{Status: a.Status},
			Message: "This was allowed before, without this allowlist_pattern, which is not added. The first answer stands."}
	case string(event.Expired):
		return &fault.Error{Code: fault.ApprovalExpired, Detail: fault.Detail{Status: a.Status},
			Message: expiredSubject[a.Kind] + " expired at " + a.ExpiresAt.Format("15:04:05") + " UTC. It counts as denied."}
	case "canceled":
		return &fault.Error{Code: fault.ApprovalAlreadyDecided, Detail: fault.Detail{Status: a.Status},
			Message: "The turn was canceled; nothing waits for this answer any more."}
	}
	return &fault.Error{Code: fault.ApprovalAlreadyDecided,
		Message: fmt.Sprintf("This was answered before: %s. The first answer stands.", a.Status),
		Detail:  fault.Detail{Status: a.Status}}
}
