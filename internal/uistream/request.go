package uistream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/dialect"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/internal/wire"
)

// request is what a chat sends: a message, or answers to what the agent has asked.
type request struct {
	turn.Request
	answers []turn.Answer // none: it is a message
	sent    []byte        // what counts of the body
	ignored []string
}

// The triggers of a request. What is regenerated is said once more, on purpose.
const (
	submit     = "submit-message"
	regenerate = "regenerate-message"
)

// understood are the fields that mean something here.
var understood = []string{"id", "messages", "trigger", "messageId"}

// parse reads a request.
func parse(body []wire.Member, r *dialect.Request) (q request, err error) {
	var c wire.Checks
	given := dialect.Given(body)
	delete(given, "caller_id")
	if id, ok := given["id"]; ok {
		given["caller_id"], r.Names["caller_id"] = id, "id"
	}
	trigger := submit
	if raw, ok := given["trigger"]; ok {
		trigger = c.OneOf("/trigger", raw, submit, regenerate)
	}
	messageID := ""
	if raw, ok := given["messageId"]; ok {
		messageID, _ = c.Text("/messageId", raw)
	}
	list := dialect.Messages(&c, given["messages"])
	q.ignored = dialect.Ignored(given, list, append(understood, "caller_id")...)
	if i := continued(list, trigger, messageID); i >= 0 {
		q.answers = responses(&c, fmt.Sprintf("/messages/%d/parts", i), list[i].Parts)
		q.Request = dialect.Compose(&c, "-", given) // for the chat's name
		return q, c.Err()
	}
	i := dialect.Asked(&c, list)
	if i < 0 {
		return q, c.Err()
	}
	r.Names["command"] = fmt.Sprintf("messages/%d/parts", i)
	if list[i].Parts == nil {
		r.Names["command"] = fmt.Sprintf("messages/%d/content", i)
	}
	q.Request = dialect.Compose(&c, content(&c, "/"+r.Names["command"], list[i]), given)
	q.sent = counting(given, list[i])
	q.IdempotencyKey = c.Once(r.Header.Values("Idempotency-Key"))
	if q.IdempotencyKey == "" && list[i].ID != "" && messageID == "" && trigger == submit {
		// A message that is edited or said once more has the id of the first.
		sum := sha256.Sum256(q.sent)
		q.IdempotencyKey = "ui-chat:" + hex.EncodeToString(sum[:])
	}
	return q, c.Err()
}

// counting is what makes a request the same one when it is sent again: all but the history.
func counting(given map[string]json.RawMessage, m dialect.Message) []byte {
	kept := make(map[string]any)
	for name, raw := range given {
		if name != "messages" && (slices.Contains(understood, name) || slices.Contains(dialect.Extensions, name)) {
			kept[name] = raw
		}
	}
	kept["message"] = m
	raw, _ := json.Marshal(kept) // all of it was JSON
	return raw
}

// continued is the index of the assistant's message that goes on: the one that messageId names,
// where it holds an answer, else the last. It is -1 where the user has said something.
func continued(list []dialect.Message, trigger, messageID string) int {
	if trigger == regenerate {
		return -1
	}
	for i, m := range list {
		if messageID != "" && m.ID == messageID && m.Role == "assistant" && len(responded(m.Parts)) > 0 {
			return i
		}
	}
	if n := len(list) - 1; n >= 0 && list[n].Role == "assistant" {
		return n
	}
	return -1
}

// content is the text of a message, which has parts since the AI SDK 5.
func content(c *wire.Checks, param string, m dialect.Message) string {
	if m.Parts == nil {
		return dialect.Text(c, param, m.Content)
	}
	return dialect.Text(c, param, m.Parts)
}

// responded are the approvals in a message that somebody has answered, by their index.
func responded(raw json.RawMessage) map[int]json.RawMessage {
	var parts []json.RawMessage
	_ = json.Unmarshal(raw, &parts) // what is no array holds none
	found := make(map[int]json.RawMessage)
	for i, p := range parts {
		var part struct {
			State    any             `json:"state"`
			Approval json.RawMessage `json:"approval"`
		}
		if json.Unmarshal(p, &part) == nil && part.State == "approval-responded" {
			found[i] = part.Approval
		}
	}
	return found
}

// responses are the answers that an assistant's message holds.
func responses(c *wire.Checks, param string, raw json.RawMessage) (list []turn.Answer) {
	found := responded(raw)
	for _, i := range slices.Sorted(maps.Keys(found)) {
		approval := found[i]
		at := fmt.Sprintf("%s/%d/approval", param, i)
		if !c.Object(at, approval) {
			continue
		}
		given := dialect.Given(wire.Members(approval))
		a := turn.Answer{Approval: c.UUID(at+"/id", orEmpty(given["id"])), Outcome: event.Denied}
		if c.Boolean(at+"/approved", given["approved"]) {
			a.Outcome = event.Allowed
		}
		if raw, ok := given["reason"]; ok {
			reason, _ := c.Text(at+"/reason", raw)
			if utf8.RuneCountInString(reason) > wire.MaxReason {
				c.Longer(at+"/reason", "characters", wire.MaxReason)
			}
			if a.Outcome == event.Denied {
				a.Reason = strings.TrimSpace(event.Plain(reason))
			}
		}
		if n := len(list); n == 0 || list[n-1].Approval != a.Approval { // one question can be about several calls
			list = append(list, a)
		}
	}
	if len(found) == 0 {
		c.Add(fault.Violation{Param: param, Rule: "required", Message: "The last message is the assistant's own, and answers none of its requests for an approval: there is nothing to do."})
	}
	return list
}

func orEmpty(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage(`""`)
	}
	return raw
}
