package turns

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/mcp/tools"
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
func (s Tools) decideApproval(ctx context.Context, c *tools.Call) (tools.Result, error) {
	id, stay := c.Args.RequiredID("approval_id"), c.Args.Bool("wait")
	a := c.Args.Decision(c.Args.Without("approval_id", "wait"), request.DecisionFields)
	a.Approval, a.Key = id, c.Caller.Key
	if err := c.Args.Err(); err != nil {
		return tools.Result{}, err
	}
	if a.Pattern != "" && !c.Caller.Scopes.Allows(apikey.Chat) { // it applies to every conversation of the workspace
		f := server.MissingScope(apikey.Chat)
		f.Param, f.Message = "allowlist_pattern", f.Message+" An allowlist_pattern holds for every conversation: leave it out to allow this once."
		return tools.Result{}, f
	}
	if stay {
		release, err := s.HoldStream(ctx, c.Caller)
		if err != nil {
			return tools.Result{}, err
		}
		defer release()
	}
	d, err := s.applyDecision(ctx, c, a)
	if err != nil {
		return tools.Result{}, err
	}
	out := decided{ApprovalID: d.ApprovalID, Status: d.Status, DecidedAt: d.DecidedAt, DecidedBy: d.DecidedBy, Pattern: d.Pattern,
		SessionID: d.SessionID, Already: d.Already}
	if !stay {
		return tools.Result{Value: out}, nil
	}
	res, err := s.awaitResumedTurn(ctx, c, d)
	out.Outcome = res.Value
	return tools.Result{Value: out, Texts: res.Texts, Failed: res.Failed}, err
}

func (s Tools) applyDecision(ctx context.Context, c *tools.Call, a turn.Answer) (turn.Decided, error) {
	ctx, cancel := s.Brief(context.WithoutCancel(ctx))
	defer cancel()
	a.Key, a.Scopes = c.Caller.Key, c.Caller.Scopes.Expand().Strings()
	d, err := s.Turns.Decide(ctx, c.Caller.Workspace.ID, a)
	f := fault.From(err)
	if f == nil || f.Code != fault.ApprovalNotFound {
		return d, err
	}
	other, err := s.Sessions.Approval(ctx, c.Caller.Workspace.ID, a.Approval)
	if err != nil || other.Kind != event.InputSecret {
		return d, f
	}
	if q, err := parseQuestion(withAbsoluteURLs(c.Base, other.Request)); err == nil { // otherwise the session is erased
		f.Message = fmt.Sprintf(
			"This is no approval but a request for the secret %s, and no tool answers it: a person gives its value with POST %s .",
			q.KeyName, q.SecretURL)
	}
	return d, f
}

// awaitResumedTurn waits for the turn that an answer resumes, and reports its progress.
func (s Tools) awaitResumedTurn(ctx context.Context, c *tools.Call, d turn.Decided) (tools.Result, error) {
	w := &wait{Tools: s, call: c, decision: true, plain: true, after: d.ApprovalID, started: turn.Started{Session: d.SessionID,
		Turn: d.TurnID}}
	brief, cancel := s.Brief(ctx)
	h, err := s.Sessions.Head(brief, c.Caller.Workspace.ID, d.SessionID)
	cancel()
	if err != nil {
		return tools.Result{}, w.interruptedError(ctx, err)
	}
	if h.Turn == d.TurnID {
		w.started.From = eventlog.From{Session: h.Session, Seq: h.StartSeq, Since: h.TurnAt}
	} else {
		w.past = true
	}
	return w.awaitResult(ctx)
}

// listPending returns the questions that wait for an answer.
func (s Tools) listPending(ctx context.Context, c *tools.Call) (tools.Result, error) {
	a := c.Args
	q := session.ApprovalQuery{Status: "pending"}
	q.Limit, q.Cursor = tools.Page(a, 20)
	if a.Raw("session_id") != nil {
		q.Session = new(a.RequiredID("session_id"))
	}
	if err := a.Err(); err != nil {
		return tools.Result{}, err
	}
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	page, err := s.Sessions.Approvals(ctx, c.Caller.Workspace.ID, q)
	for i := range page.Data {
		page.Data[i].Request = withAbsoluteURLs(c.Base, page.Data[i].Request)
	}
	return tools.Result{Value: page}, err
}

// cancelSession cancels the session's turn. It also succeeds if none is running.
func (s Tools) cancelSession(ctx context.Context, c *tools.Call) (tools.Result, error) {
	id := c.Args.RequiredID("session_id")
	if err := c.Args.Err(); err != nil {
		return tools.Result{}, err
	}
	ctx, cancel := s.Brief(context.WithoutCancel(ctx))
	defer cancel()
	got, err := s.Turns.Cancel(ctx, c.Caller.Workspace.ID, id)
	value := map[string]any{"canceled": got.Canceled, "runner_halt_deferred": got.HaltDeferred}
	if !got.Canceled {
		value["reason"] = "not_in_progress"
	}
	return tools.Result{Value: value}, err
}
