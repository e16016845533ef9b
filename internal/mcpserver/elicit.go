package mcpserver

import (
	"context"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/internal/wire"
)

// roundTrips is the first revision in which a result can ask something: in those before it a
// server sends a request of its own, and without sessions nobody could take the answer.
const roundTrips = "2026-07-28"

// elicits reports whether the client can put a question to its person and bring the answer.
func (c *call) elicits() bool {
	if c.req.ProtocolVersion() < roundTrips {
		return false
	}
	caps := c.req.ClientCapabilities()
	return caps != nil && caps.Elicitation != nil && (caps.Elicitation.Form != nil || caps.Elicitation.URL == nil)
}

// elicitation is an approval as a form.
func elicitation(q event.InputRequired, seq int64) result {
	return result{id: q.ApprovalID.String(), state: strconv.FormatInt(seq, 10), ask: &mcp.ElicitParams{
		Mode:    "form",
		Message: "The agent wants to do this, and waits until " + q.ExpiresAt.Format("15:04:05 MST") + " for your approval.\n" + plan(q),
		RequestedSchema: map[string]any{
			"type": "object",
			"properties": map[string]any{
				"decision": map[string]any{"type": "string", "title": "Decision", "enum": []string{"allow", "deny"}},
				"reason":   map[string]any{"type": "string", "title": "Reason", "description": "With deny: what to tell the agent.", "maxLength": wire.MaxReason},
			},
			"required": []string{"decision"},
		},
	}}
}

// answered takes the answers that a call brings with it. over says that the call ends here:
// the person has put the question aside.
func (w *wait) answered(ctx context.Context) (res result, over bool, err error) {
	for name, response := range w.call.req.Params.InputResponses {
		id, err := uuid.Parse(name)
		answer, ok := response.(*mcp.ElicitResult)
		if err != nil || !ok {
			continue // of nothing that was asked
		}
		brief, cancel := w.door.Brief(ctx)
		a, err := w.cfg.Sessions.Approval(brief, w.call.caller.Workspace.ID, id)
		cancel()
		switch {
		case err != nil && fault.From(err) == nil:
			return res, false, err
		case err != nil || a.TurnID != w.started.Turn || a.Kind != event.InputApproval || a.Status != "pending":
			continue // another's, or answered from elsewhere: the log says how
		}
		decision, ok := decisionOf(answer)
		if !ok {
			w.plain = true
			res, err = w.question(ctx, a.Request, 0)
			return res, true, err
		}
		decision.Approval, decision.Key = id, w.call.caller.Key
		if _, err := w.decide(ctx, w.call, decision); err != nil && !late(err) {
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

// decisionOf reads a form; ok is false where it was put aside.
func decisionOf(r *mcp.ElicitResult) (a turn.Answer, ok bool) {
	word, _ := r.Content["decision"].(string)
	a.Outcome = event.Denied
	switch {
	case r.Action == "decline":
		a.Reason = "The person declined."
	case r.Action != "accept":
		return a, false
	case word == "allow":
		a.Outcome = event.Allowed
	case word != "deny":
		return a, false
	}
	if reason, _ := r.Content["reason"].(string); a.Outcome == event.Denied && reason != "" {
		a.Reason = cut(strings.TrimSpace(event.Plain(reason)), wire.MaxReason)
	}
	return a, true
}

// cut shortens a text to n characters.
func cut(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}
