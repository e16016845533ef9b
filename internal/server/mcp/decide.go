package mcp

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/turn"
)

// decided is the result of a decision.
type decided struct {
	ApprovalID uuid.UUID        `json:"approval_id"`
	Status     string           `json:"status"`
	DecidedAt  *time.Time       `json:"decided_at"`
	DecidedBy  *session.Decider `json:"decided_by"`
	Pattern    *string          `json:"allowlist_pattern"`
	SessionID  uuid.UUID        `json:"session_id"`
	Already    bool             `json:"already_decided"`
	Outcome    any              `json:"outcome,omitempty"` // the result of the turn
}

// decideApproval allows or denies an operation of a turn.
func (s *api) decideApproval(ctx context.Context, c *call) (result, error) {
	id, stay := c.args.RequiredID("approval_id"), c.args.Bool("wait")
	a := c.args.Decision(c.args.Without("approval_id", "wait"), request.DecisionFields)
	a.Approval, a.Key = id, c.caller.Key
	if err := c.args.Err(); err != nil {
		return result{}, err
	}
	if a.Pattern != "" && !c.caller.Scopes.Allows(apikey.Chat) { // it applies to every conversation of the workspace
		f := server.MissingScope(apikey.Chat)
		f.Param, f.Message = "allowlist_pattern", f.Message+" An allowlist_pattern holds for every conversation: leave it out to allow this once."
		return result{}, f
	}
	if stay {
		release, err := s.HoldStream(ctx, c.caller)
		if err != nil {
			return result{}, err
		}
		defer release()
	}
	d, err := s.decide(ctx, c, a)
	if err != nil {
		return result{}, err
	}
	out := decided{ApprovalID: d.ApprovalID, Status: d.Status, DecidedAt: d.DecidedAt, DecidedBy: d.DecidedBy, Pattern: d.Pattern, SessionID: d.SessionID, Already: d.Already}
	if !stay {
		return result{value: out}, nil
	}
	res, err := s.join(ctx, c, d)
	out.Outcome = res.value
	return result{value: out, texts: res.texts, failed: res.failed}, err
}

func (s *api) decide(ctx context.Context, c *call, a turn.Answer) (turn.Decided, error) {
	ctx, cancel := s.Brief(context.WithoutCancel(ctx))
	defer cancel()
	a.Key, a.Scopes = c.caller.Key, c.caller.Scopes.Expand().Strings()
	d, err := s.Turns.Decide(ctx, c.caller.Workspace.ID, a)
	f := fault.From(err)
	if f == nil || f.Code != fault.ApprovalNotFound {
		return d, err
	}
	other, err := s.Sessions.Approval(ctx, c.caller.Workspace.ID, a.Approval)
	if err != nil || other.Kind != event.InputSecret {
		return d, f
	}
	if q, err := parseQuestion(withAbsoluteURLs(c.base, other.Request)); err == nil { // otherwise the session is erased
		f.Message = fmt.Sprintf("This is no approval but a request for the secret %s, and no tool answers it: a person gives its value with POST %s .", q.KeyName, q.SecretURL)
	}
	return d, f
}

// join waits for the turn that an answer resumes, and reports its progress.
func (s *api) join(ctx context.Context, c *call, d turn.Decided) (result, error) {
	w := &wait{api: s, call: c, decision: true, plain: true, after: d.ApprovalID, started: turn.Started{Session: d.SessionID, Turn: d.TurnID}}
	brief, cancel := s.Brief(ctx)
	h, err := s.Sessions.Head(brief, c.caller.Workspace.ID, d.SessionID)
	cancel()
	if err != nil {
		return result{}, w.interruptedError(ctx, err)
	}
	if h.Turn == d.TurnID {
		w.started.From = eventlog.From{Session: h.Session, Seq: h.StartSeq, Since: h.TurnAt}
	} else {
		w.past = true
	}
	return w.result(ctx)
}

// cancelSession cancels the session's turn. It also succeeds if none is running.
func (s *api) cancelSession(ctx context.Context, c *call) (result, error) {
	id := c.args.RequiredID("session_id")
	if err := c.args.Err(); err != nil {
		return result{}, err
	}
	ctx, cancel := s.Brief(context.WithoutCancel(ctx))
	defer cancel()
	got, err := s.Turns.Cancel(ctx, c.caller.Workspace.ID, id)
	value := map[string]any{"canceled": got.Canceled, "runner_halt_deferred": got.HaltDeferred}
	if !got.Canceled {
		value["reason"] = "not_in_progress"
	}
	return result{value: value}, err
}
