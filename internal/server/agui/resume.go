package agui

import (
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/turn"
)

// resume is the answer to an interrupt.
type resume struct {
	id        uuid.UUID
	cancelled bool
	answer    turn.Answer // answer to the resolved interrupt; without an Outcome if the payload has none
}

// parseResume parses the field "resume".
func parseResume(c *request.Checks, raw json.RawMessage) (list []resume) {
	seen := make(map[uuid.UUID]bool)
	for i, item := range c.Array("/resume", raw, 20) {
		at := fmt.Sprintf("/resume/%d", i)
		if !c.Object(at, item) {
			continue
		}
		given := request.ByName(request.Members(item))
		id := c.UUID(at+"/interruptId", request.OrEmptyText(given["interruptId"]))
		if seen[id] {
			c.Add(fault.Violation{Param: at + "/interruptId", Rule: "repeated",
				Message: "The interrupt " + id.String() + " is answered twice. Send one answer."})
		}
		seen[id] = true
		rs := resume{id: id, answer: turn.Answer{Approval: id}}
		switch c.OneOf(at+"/status", request.OrEmptyText(given["status"]), "resolved", "cancelled") {
		case "cancelled":
			rs.cancelled = true
		case "resolved":
			if raw, ok := given["payload"]; ok {
				parsePayload(c, at+"/payload", raw, &rs.answer)
			}
		}
		list = append(list, rs)
	}
	return list
}

// parsePayload reads the answer to an interrupt. It rejects the value of a secret, which belongs to
// secret_url.
func parsePayload(c *request.Checks, at string, raw json.RawMessage, a *turn.Answer) {
	if !c.Object(at, raw) {
		return
	}
	given := request.ByName(request.Members(raw))
	if _, ok := given["value"]; ok {
		c.Add(fault.Violation{Param: at + "/value", Rule: "unknown",
			Message: "The value of a secret does not come this way: send it to the secret_url of its interrupt, and resolve the interrupt without " +
				"it."})
	}
	if _, ok := given["editedArgs"]; ok { // otherwise the call would run unedited
		c.Add(fault.Violation{Param: at + "/editedArgs", Rule: "unknown",
			Message: "The arguments of a call cannot be edited. Approve it as it is, or refuse it and say in reason what should change."})
	}
	if raw, ok := given["approved"]; ok {
		if a.Outcome = event.Denied; c.Boolean(at+"/approved", raw) {
			a.Outcome = event.Allowed
		}
	}
	if raw, ok := given["pattern"]; ok && string(raw) != `""` {
		if a.Pattern = c.Word(at+"/pattern", raw, request.MaxPattern); a.Outcome == event.Denied {
			c.Add(fault.Violation{Param: at + "/pattern", Rule: "requires", Message: "A pattern comes only with approved: true.", Expected: true})
		}
	}
	if why := request.DenialReason(c, at+"/reason", given["reason"]); a.Outcome == event.Denied {
		a.Reason = why
	}
}
