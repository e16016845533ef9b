package turns

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/jsonrpc"
	"github.com/parley-server/parley/internal/server/mcp/tools"
	"github.com/parley-server/parley/internal/server/mcp/transport"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/text/render"
	"github.com/parley-server/parley/internal/turn"
)

// canElicit reports whether the client can ask its user a question and return the answer.
func canElicit(c *tools.Call) bool {
	if c.Request.ProtocolVersion() < transport.RoundTrips {
		return false
	}
	caps := c.Request.ClientCapabilities()
	return caps != nil && caps.Elicitation != nil && (caps.Elicitation.Form != nil || caps.Elicitation.URL == nil)
}

// elicitationResult returns an approval as a form, with a notice.
func elicitationResult(q event.InputRequired, seq int64, notice string) tools.Result {
	return tools.Result{ID: q.ApprovalID.String(), State: strconv.FormatInt(seq, 10), Ask: &mcp.ElicitParams{
		Mode: "form",
		Message: joinParagraphs(notice, "The agent wants to do this, and waits until "+formatClock(q.ExpiresAt)+" for your approval.",
			render.Approval(q)),
		RequestedSchema: map[string]any{
			"type": "object",
			"properties": map[string]any{
				"decision": map[string]any{"type": "string", "title": "Decision", "enum": []string{"allow", "deny"}},
				"reason": map[string]any{"type": "string", "title": "Reason", "description": "With deny: the reason that the agent gets.",
					"maxLength": request.MaxReason},
			},
			"required": []string{"decision"},
		},
	}}
}

// applyAnswers applies the answers that come with a call. over reports that the call ends here: the
// user has dismissed the question.
func (w *wait) applyAnswers(ctx context.Context) (res tools.Result, over bool, err error) {
	_, answers := w.call.Answers()
	for _, m := range answers {
		id, err := uuid.Parse(m.Name)
		if err != nil {
			continue // not one of the questions
		}
		brief, cancel := w.Brief(ctx)
		a, err := w.Sessions.Approval(brief, w.call.Caller.Workspace.ID, id)
		cancel()
		switch {
		case err != nil && fault.From(err) == nil:
			return res, false, err
		case err != nil || a.TurnID != w.started.Turn || a.Kind != event.InputApproval:
			continue // answer to another question
		}
		decision, dismissed, bad := parseElicitation("/inputResponses/"+m.Name, m.Value)
		switch {
		case bad != nil:
			return res, false, bad
		case dismissed && a.Status == "pending":
			w.plain = true
			w.notice = "The person has put the question aside. It stays open until " + formatClock(a.ExpiresAt) + ": decide_approval answers it."
			res, err = w.questionResult(ctx, a.Request, 0)
			return res, true, err
		case dismissed:
			continue // answered elsewhere: the log has the answer
		}
		decision.Approval, decision.Key = id, w.call.Caller.Key
		if _, err := w.applyDecision(ctx, w.call, decision); isTooLate(err) {
			w.notice = "This answer changed nothing. " + fault.From(err).Message
		} else if err != nil {
			return res, false, err
		}
	}
	return res, false, nil
}

// isTooLate reports whether an answer failed because another came first or the time was over.
func isTooLate(err error) bool {
	f := fault.From(err)
	return f != nil && (f.Code == fault.ApprovalAlreadyDecided || f.Code == fault.ApprovalExpired)
}

// parseElicitation parses the answer to a form at a JSON Pointer; dismissed reports that the user
// decided nothing.
func parseElicitation(at string, raw json.RawMessage) (a turn.Answer, dismissed bool, bad error) {
	root := request.Fields{Checks: new(request.Checks)}
	if root.Object(at, raw) {
		in := root.Nested(at, raw)
		a.Outcome = event.Denied
		switch in.OneOf(in.Pointer("action"), in.Raw("action"), "accept", "decline", "cancel") {
		case "decline":
			a.Reason = "The person declined."
		case "cancel":
			dismissed = true
		case "accept":
			a.Outcome, a.Reason = parseForm(in)
		}
	}
	if f := fault.From(root.Err()); f != nil {
		var messages []string
		for _, v := range f.Detail.Violations {
			messages = append(messages, v.Message)
		}
		bad = jsonrpc.Errorf(jsonrpc.InvalidParams, "%s", strings.Join(messages, " "))
	}
	return a, dismissed, bad
}

// parseForm parses the content of a form that the user accepted.
func parseForm(answer request.Fields) (outcome event.Outcome, reason string) {
	at, outcome := answer.Pointer("content"), event.Denied
	if !answer.Object(at, answer.Raw("content")) {
		return outcome, ""
	}
	form := answer.Child("content")
	if form.OneOf(form.Pointer("decision"), form.Raw("decision"), "allow", "deny") == "allow" {
		outcome = event.Allowed
	}
	reason = request.DenialReason(form.Checks, form.Pointer("reason"), form.Raw("reason"))
	if outcome == event.Allowed && reason != "" { // it may be a condition, so nothing is decided
		form.Add(fault.Violation{Param: form.Pointer("reason"), Rule: "requires", Expected: "deny",
			Message: form.Pointer("reason")[1:] + " comes only with the decision deny. Nothing was decided."})
	}
	return outcome, reason
}
