package agui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/dialect"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/internal/wire"
)

// input is what a client wants to run, as far as it is understood.
type input struct {
	About
	message *turn.Request // nil: the last message is not the user's
	resume  []resume
	ignored []string
}

// resume is the answer to an interrupt.
type resume struct {
	id        uuid.UUID
	cancelled bool
	answer    turn.Answer // of what is resolved
}

// maxID is how long the name of a run may be.
const maxID = 200

// parse reads a request.
func parse(body []wire.Member, h http.Header) (in input, err error) {
	var c wire.Checks
	given := dialect.Given(body)
	in.Thread = c.Word("/threadId", orEmpty(given["threadId"]), wire.MaxCallerID)
	in.Run = c.Word("/runId", orEmpty(given["runId"]), maxID)
	_, in.Versioned = given["protocolVersion"]
	for _, name := range []string{"tools", "context", "state"} {
		if raw, ok := given[name]; ok && len(raw) > 2 { // more than an empty array or object
			in.ignored = append(in.ignored, name)
		}
	}
	extensions := make(map[string]json.RawMessage)
	if raw, ok := given["forwardedProps"]; ok && raw[0] == '{' {
		extensions = dialect.Given(wire.Members(raw))
	}
	extensions["caller_id"] = orEmpty(given["threadId"])
	if raw, ok := given["resume"]; ok {
		in.resume = answers(&c, raw)
	}
	var list []dialect.Message
	if raw, ok := given["messages"]; ok && string(raw) != "[]" {
		list = dialect.Messages(&c, raw)
	}
	if n := len(list) - 1; len(in.resume) == 0 && n >= 0 && list[n].Role == "user" {
		req := dialect.Compose(&c, dialect.Text(&c, fmt.Sprintf("/messages/%d/content", n), list[n].Content), extensions)
		if req.IdempotencyKey = c.Once(h.Values("Idempotency-Key")); req.IdempotencyKey == "" && wire.Printable(in.Run) {
			req.IdempotencyKey = "ag-ui:" + in.Run // a run that is sent again is the same run
		}
		in.message = &req
	}
	return in, c.Err()
}

func orEmpty(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage(`""`)
	}
	return raw
}

// answers reads the field "resume".
func answers(c *wire.Checks, raw json.RawMessage) (list []resume) {
	for i, item := range c.Array("/resume", raw, 20) {
		at := fmt.Sprintf("/resume/%d", i)
		var e struct {
			ID      string          `json:"interruptId"`
			Status  string          `json:"status"`
			Payload json.RawMessage `json:"payload"`
		}
		if json.Unmarshal(item, &e) != nil {
			c.Type(at, "object")
			continue
		}
		id, err := uuid.Parse(e.ID)
		if err != nil {
			c.Add(fault.Violation{Param: at + "/interruptId", Rule: "format", Message: "interruptId is not the id of an interrupt of this service.", Expected: "uuid"})
		}
		rs := resume{id: id, cancelled: e.Status == "cancelled", answer: turn.Answer{Approval: id, Outcome: event.Allowed}}
		switch {
		case rs.cancelled:
		case e.Status != "resolved":
			c.Add(fault.Violation{Param: at + "/status", Rule: "enum", Message: "status is resolved or cancelled.", Allowed: []any{"resolved", "cancelled"}})
		default:
			payload(c, at+"/payload", e.Payload, &rs.answer)
		}
		list = append(list, rs)
	}
	return list
}

// payload reads what an interrupt was resolved with. Of an interrupt that asks for a secret it
// says nothing.
func payload(c *wire.Checks, at string, raw json.RawMessage, a *turn.Answer) {
	if raw == nil || string(raw) == "null" {
		a.Outcome = ""
		return
	}
	var p struct {
		Approved *bool           `json:"approved"`
		Pattern  string          `json:"pattern"`
		Reason   string          `json:"reason"`
		Value    json.RawMessage `json:"value"`
	}
	switch err := json.Unmarshal(raw, &p); {
	case err != nil:
		c.Type(at, "object")
	case p.Value != nil:
		c.Add(fault.Violation{Param: at + "/value", Rule: "unknown", Message: "The value of a secret does not come this way: send it to the secret_url of its interrupt, and resolve the interrupt without it."})
	case p.Approved == nil:
		a.Outcome = ""
	case *p.Approved:
		a.Pattern = p.Pattern
	default:
		a.Outcome, a.Reason = event.Denied, strings.TrimSpace(event.Plain(p.Reason))
	}
	if utf8.RuneCountInString(p.Pattern) > wire.MaxPattern {
		c.Longer(at+"/pattern", "characters", wire.MaxPattern)
	}
	if utf8.RuneCountInString(p.Reason) > wire.MaxReason {
		c.Longer(at+"/reason", "characters", wire.MaxReason)
	}
}
