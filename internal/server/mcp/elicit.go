package mcp

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/jsonrpc"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/strictjson"
	"github.com/parley-server/parley/internal/text/render"
	"github.com/parley-server/parley/internal/turn"
)

// elicits reports whether the client can put a question to its person and bring the answer.
func (c *call) elicits() bool {
	if c.req.ProtocolVersion() < roundTrips {
		return false
	}
	caps := c.req.ClientCapabilities()
	return caps != nil && caps.Elicitation != nil && (caps.Elicitation.Form != nil || caps.Elicitation.URL == nil)
}

// elicitation returns an approval as a form. notice comes with it.
func elicitation(q event.InputRequired, seq int64, notice string) result {
	return result{id: q.ApprovalID.String(), state: strconv.FormatInt(seq, 10), ask: &mcp.ElicitParams{
		Mode:    "form",
		Message: paragraphs(notice, "The agent wants to do this, and waits until "+clock(q.ExpiresAt)+" for your approval.", render.Approval(q)),
		RequestedSchema: map[string]any{
			"type": "object",
			"properties": map[string]any{
				"decision": map[string]any{"type": "string", "title": "Decision", "enum": []string{"allow", "deny"}},
				"reason":   map[string]any{"type": "string", "title": "Reason", "description": "With deny: what to tell the agent.", "maxLength": request.MaxReason},
			},
			"required": []string{"decision"},
		},
	}}
}

// answered applies the answers that come with a call. over reports that the call ends here: the
// user has dismissed the question.
func (w *wait) answered(ctx context.Context) (res result, over bool, err error) {
	for _, m := range w.call.message.answers {
		id, err := uuid.Parse(m.Name)
		if err != nil {
			continue // of nothing that was asked
		}
		brief, cancel := w.Brief(ctx)
		a, err := w.Sessions.Approval(brief, w.call.caller.Workspace.ID, id)
		cancel()
		switch {
		case err != nil && fault.From(err) == nil:
			return res, false, err
		case err != nil || a.TurnID != w.started.Turn || a.Kind != event.InputApproval:
			continue // another's
		}
		decision, aside, bad := decisionOf("/inputResponses/"+m.Name, m.Value)
		switch {
		case bad != nil:
			return res, false, bad
		case aside && a.Status == "pending":
			w.plain = true
			w.notice = "The person has put the question aside. It stays open until " + clock(a.ExpiresAt) + ": decide_approval answers it."
			res, err = w.question(ctx, a.Request, 0)
			return res, true, err
		case aside:
			continue // answered elsewhere: the log has the answer
		}
		decision.Approval, decision.Key = id, w.call.caller.Key
		if _, err := w.decide(ctx, w.call, decision); late(err) {
			w.notice = "This answer changed nothing. " + fault.From(err).Message
		} else if err != nil {
			return res, false, err
		}
	}
	return res, false, nil
}

// late reports whether an answer failed because there was another, or no more time.
func late(err error) bool {
	f := fault.From(err)
	return f != nil && (f.Code == fault.ApprovalAlreadyDecided || f.Code == fault.ApprovalExpired)
}

// decisionOf reads a form; aside reports that the user dismissed it.
func decisionOf(param string, raw json.RawMessage) (a turn.Answer, aside bool, bad error) {
	var c request.Checks
	in := make(map[string]json.RawMessage)
	if c.Object(param, raw) {
		_ = strictjson.Unmarshal(raw, &in) // an object
		a.Outcome = event.Denied
		switch c.OneOf(param+"/action", in["action"], "accept", "decline", "cancel") {
		case "decline":
			a.Reason = "The person declined."
		case "cancel":
			aside = true
		case "accept":
			a.Outcome, a.Reason = formOf(&c, param+"/content", in["content"])
		}
	}
	if f := fault.From(c.Err()); f != nil {
		var said []string
		for _, v := range f.Detail.Violations {
			said = append(said, v.Message)
		}
		bad = jsonrpc.Errorf(jsonrpc.InvalidParams, "%s", strings.Join(said, " "))
	}
	return a, aside, bad
}

// formOf reads what a person has filled in.
func formOf(c *request.Checks, param string, raw json.RawMessage) (outcome event.Outcome, reason string) {
	in := make(map[string]json.RawMessage)
	if !c.Object(param, raw) {
		return event.Denied, ""
	}
	_ = strictjson.Unmarshal(raw, &in) // an object
	outcome = event.Denied
	if c.OneOf(param+"/decision", in["decision"], "allow", "deny") == "allow" {
		outcome = event.Allowed
	}
	if in["reason"] != nil && string(in["reason"]) != "null" {
		text, _ := c.Text(param+"/reason", in["reason"])
		if utf8.RuneCountInString(text) > request.MaxReason {
			c.Longer(param+"/reason", "characters", request.MaxReason)
		}
		reason = strings.TrimSpace(event.Plain(text))
		if outcome == event.Allowed && reason != "" { // a condition, maybe: nothing may be done past it
			c.Add(fault.Violation{Param: param + "/reason", Rule: "requires", Message: param[1:] + "/reason comes only with the decision deny. Nothing was decided.", Expected: "deny"})
		}
	}
	return outcome, reason
}
