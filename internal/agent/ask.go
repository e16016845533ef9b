package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/tool"
)

// Permit decides whether a tool call may run. Input that it does not understand must not make it
// more lenient.
type Permit func(ctx context.Context, toolName string, input json.RawMessage) (Verdict, error)

// Verdict is the result of Permit. The zero value lets the call run.
type Verdict struct {
	Ask     bool   // it needs an approval
	Denied  string // reason why it must not run, for the model; "": it may run
	Pattern string // pattern that would allow similar calls in future; for Ask

	Source  event.Source // what decided, unless it asks
	Matched string       // for SourcePattern: the pattern of the allow-list
}

// Secrets decides whether a credential may be requested by its name. refusal is a sentence for the
// model.
type Secrets func(ctx context.Context, name string) (refusal string, err error)

// askApproval requests one approval for all calls of a step that need one and have none. The
// approval also shows the other calls of the step, because they can prepare what an approved call
// does. No call of the step runs before the answer, and a call that the approval does not show
// never runs.
func (r *run) askApproval(ctx context.Context, s *step) error {
	if r.Permit == nil {
		return nil
	}
	q := event.InputRequired{What: event.InputApproval}
	for i, c := range s.reply.Calls {
		op, shown, err := r.previewCall(ctx, s, c)
		if err != nil {
			return err
		}
		op.Position = i + 1
		switch shown {
		case asks:
			q.Operations = append(q.Operations, op)
		case runs:
			q.OtherCalls = append(q.OtherCalls, op)
		}
	}
	if len(q.Operations) == 0 {
		return nil
	}
	q.Plan = planText(s, q.Operations)
	return r.parkRun(q)
}

// fate is the outcome of a call, as far as it is known before its step runs.
type fate int

const (
	ends fate = iota // it has run, or will be rejected
	runs
	asks
)

// previewCall returns a call as an approval shows it, and its fate.
func (r *run) previewCall(ctx context.Context, s *step, c event.ToolCall) (op event.Operation, f fate, err error) {
	t, secret := r.findTool(c.Tool), c.Tool == requestSecret && r.Secrets != nil
	_, bad := model.Malformed(c.Input)
	_, done := s.results[c.ID]
	_, decided := r.state.decisionFor(c)
	op = event.Operation{ToolUseID: c.ID, Tool: c.Tool, Summary: summarizeCall(t, c), Input: c.Input}
	switch {
	case done, bad:
		return op, ends, nil
	case secret, c.Tool == readResult, s.begun[c.ID], decided:
		return op, runs, nil
	case t == nil, t.Spec().Unavailable != "", tool.WrongInput(t, c.Input) != "":
		return op, ends, nil
	}
	v, err := r.Permit(ctx, c.Tool, c.Input)
	switch {
	case err != nil || v.Denied != "":
		return op, ends, err
	case v.Ask:
		op.SuggestedPattern = v.Pattern
		return op, asks, nil
	}
	return op, runs, nil
}

// planText returns the model's text before the calls, or a summary of the calls.
func planText(s *step, ops []event.Operation) string {
	if s.reply.Text != "" {
		return s.reply.Text
	}
	text := ""
	for _, op := range ops {
		if text != "" {
			text += "; "
		}
		text += op.Summary
	}
	return text
}

// parkRun ends the run until the question is answered.
func (r *run) parkRun(ask event.Question) error {
	if err := r.emitEvents(ask); err != nil {
		return err
	}
	return errStopped
}

// judgment is the decision about a call before it runs.
type judgment struct {
	refusal *tool.Result       // result of a call that cannot or must not run; nil: it may run
	verdict *event.ToolVerdict // nil: no rule was asked
}

// refuse returns the judgment of a call that does not run.
func refuse(reason string) judgment { return judgment{refusal: new(tool.Reject(reason))} }

// judgeCall applies the answer to the call's question, or the rules.
func (r *run) judgeCall(ctx context.Context, c event.ToolCall) (judgment, error) {
	if d, decided := r.state.decisionFor(c); decided {
		return r.state.decisionJudgment(c, d), nil
	}
	if r.Permit == nil || c.Tool == readResult {
		return judgment{}, nil
	}
	if r.state.unseen[c.ID] {
		j := refuse("This was not shown when the step was approved, so it was not done. Call the tool again.")
		j.verdict = &event.ToolVerdict{ToolUseID: c.ID, Verdict: event.Denied, Source: event.SourceApproval}
		return j, nil
	}
	v, err := r.Permit(ctx, c.Tool, c.Input)
	if err != nil {
		return judgment{}, err
	}
	if v.Ask { // the rules have become stricter since the approval was requested
		v.Denied, v.Source = "This needs an approval that was not asked for. Call the tool again.", event.SourceRule
	}
	j := judgment{verdict: &event.ToolVerdict{ToolUseID: c.ID, Verdict: event.Allowed, Source: v.Source, Pattern: v.Matched}}
	if v.Denied != "" {
		j.refusal, j.verdict.Verdict = new(tool.Reject(v.Denied)), event.Denied
	}
	return j, nil
}

// refuseUnavailable refuses the call of a tool that the model was not offered. Rules may be the
// reason, and then the verdict names them.
func (r *run) refuseUnavailable(ctx context.Context, t tool.Tool, c event.ToolCall) (judgment, error) {
	j := refuse(t.Spec().Unavailable)
	if r.Permit == nil {
		return j, nil
	}
	v, err := r.Permit(ctx, c.Tool, c.Input)
	if err == nil && v.Denied != "" {
		j.verdict = &event.ToolVerdict{ToolUseID: c.ID, Verdict: event.Denied, Source: v.Source}
	}
	return j, err
}

// decisionJudgment returns the judgment of a call that a decision covers.
func (s *state) decisionJudgment(c event.ToolCall, d event.Decision) judgment {
	j := judgment{refusal: s.decisionResult(c, d)}
	j.verdict = &event.ToolVerdict{ToolUseID: c.ID, Verdict: event.Allowed, Source: event.SourceApproval, ApprovalID: d.ApprovalID}
	if j.refusal != nil {
		j.verdict.Verdict = event.Denied
	}
	return j
}

// decisionResult returns the result of a call for its decision; nil if it was allowed. The decider
// may be a user or a program: only the reason can name it.
func (s *state) decisionResult(c event.ToolCall, d event.Decision) *tool.Result {
	switch {
	case d.Outcome == event.Allowed:
		return nil
	case d.Outcome == event.Expired:
		return new(tool.Reject(fmt.Sprintf("The approval was not answered %s, so this was not done.", s.asked[c.ID].windowText())))
	case d.Reason != "":
		return new(tool.Reject("This was denied: " + d.Reason))
	}
	return new(tool.Reject("This was denied, so it was not done."))
}

// windowText describes how long a question could be answered.
func (q question) windowText() string {
	switch d := q.window.Round(time.Second); {
	case d < time.Second:
		return "in time"
	case d == time.Minute:
		return "within a minute"
	case d%time.Minute == 0:
		return fmt.Sprintf("within %d minutes", d/time.Minute)
	default:
		return fmt.Sprintf("within %d seconds", d/time.Second)
	}
}

// SecretTool is the name of the tool that requests a credential from a user.
const SecretTool = "request_secret"

const requestSecret = SecretTool

type secretInput struct {
	KeyName string `json:"key_name" jsonschema:"name of a registered credential"`
	Reason  string `json:"reason" jsonschema:"reason for the user"`
}

var secretTool = model.Tool{
	Name: requestSecret,
	Description: "Ask the person for the value of a registered credential, by its name. The value goes into the vault, never to you: " +
		"you learn only whether it is there.",
	Schema: tool.SchemaOf[secretInput](),
}

const maxReason = 500 // characters

// secretResult returns the result of a request_secret call after the user's answer.
func (r *run) secretResult(ctx context.Context, c event.ToolCall) (tool.Result, error) {
	var in secretInput
	if wrong := tool.Decode(c.Input, &in); wrong != "" {
		return tool.Reject(wrong), nil
	}
	if in.KeyName == "" {
		return tool.Reject(`request_secret takes {"key_name": "...", "reason": "..."}.`), nil
	}
	if d, ok := r.state.decisionFor(c); ok {
		switch d.Outcome {
		case event.Provided:
			return tool.Result{OK: true, Output: fmt.Sprintf("%s is in the vault now.", in.KeyName)}, nil
		case event.Expired:
			return tool.Reject(fmt.Sprintf("%s was not provided %s. Continue without it.", in.KeyName, r.state.asked[c.ID].windowText())), nil
		}
		return tool.Reject(fmt.Sprintf("%s will not be provided. Continue without it.", in.KeyName)), nil
	}
	refusal, err := r.Secrets(ctx, in.KeyName)
	if err != nil {
		return tool.Result{}, err
	}
	if refusal != "" {
		return tool.Reject(refusal), nil
	}
	return tool.Result{}, r.parkRun(event.InputRequired{What: event.InputSecret, KeyName: in.KeyName, ToolUseID: c.ID,
		Reason: text.Truncate(event.Plain(in.Reason), maxReason)})
}
