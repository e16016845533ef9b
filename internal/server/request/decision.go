package request

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/strictjson"
	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/turn"
)

// The limits of an answer to an approval.
const (
	MaxReason  = 500 // characters
	MaxPattern = 500 // characters
	MaxActor   = 255 // characters
)

// DecisionFields are all names that a decision may have over HTTP.
var DecisionFields = []string{"decision", "allowlist_pattern", "reason", "actor"}

// Decision parses a decision about operations. It may have the named fields; the fields besides the
// decision are for the caller to parse.
func (c *Checks) Decision(body []Member, fields []string) (a turn.Answer) {
	word := ""
	given := make(map[string]bool)
	for _, f := range body {
		param := Pointer(f.Name)
		given[f.Name] = true
		switch f.Name {
		case "decision":
			word = c.OneOf(param, f.Value, "allow", "deny")
		case "allowlist_pattern":
			a.Pattern = c.Word(param, f.Value, MaxPattern)
		case "reason":
			a.Reason = c.reason(param, f.Value)
		case "actor":
			a.Actor = c.actor(param, f.Value)
		default:
			if !slices.Contains(fields, f.Name) {
				c.Unknown("field", param, f.Name, fields)
			}
		}
	}
	a.Outcome = event.Denied
	if word == "allow" {
		a.Outcome = event.Allowed
	}
	switch {
	case !given["decision"]:
		c.Add(fault.Violation{Param: "/decision", Rule: "required", Message: "decision is missing: allow or deny."})
	case word == "allow" && given["reason"]:
		c.Add(fault.Violation{Param: "/reason", Rule: "requires", Message: "reason comes only with the decision deny.", Expected: "deny"})
	case word == "deny" && given["allowlist_pattern"]:
		c.Add(fault.Violation{Param: "/allowlist_pattern", Rule: "requires", Message: "allowlist_pattern comes only with the decision allow.", Expected: "allow"})
	}
	return a
}

// actor parses the name of the user behind the key. It is one line that is displayed as it is
// stored.
func (c *Checks) actor(param string, raw json.RawMessage) string {
	s := c.Word(param, raw, MaxActor)
	if strings.ContainsFunc(s, text.IsTerminalControl) && strictjson.IsText(raw) {
		c.Add(fault.Violation{Param: param, Rule: "format",
			Message: "actor contains a line end, or a control or direction character. Send a name in one line without them."})
	}
	return s
}

// reason parses the reason of a denial; an empty one counts as absent.
func (c *Checks) reason(param string, raw json.RawMessage) string {
	s, ok := c.Text(param, raw)
	if ok && utf8.RuneCountInString(s) > MaxReason {
		c.Longer(param, "characters", MaxReason)
	}
	return strings.TrimSpace(event.Plain(s))
}

var secretFields = []string{"action", "value", "actor"}

// Secret parses the answer to a secret request. Its value is passed only to the vault.
func (c *Checks) Secret(body []Member) (a turn.Answer) {
	word := ""
	given := make(map[string]bool)
	for _, f := range body {
		param := Pointer(f.Name)
		given[f.Name] = true
		switch f.Name {
		case "action":
			word = c.OneOf(param, f.Value, "provide", "skip")
		case "value":
			a.Value = c.secret(param, f.Value)
		case "actor":
			a.Actor = c.actor(param, f.Value)
		default:
			c.Unknown("field", param, f.Name, secretFields)
		}
	}
	a.Outcome = event.Skipped
	if word == "provide" {
		a.Outcome = event.Provided
	}
	switch {
	case !given["action"]:
		c.Add(fault.Violation{Param: "/action", Rule: "required", Message: "action is missing: provide or skip."})
	case word == "provide" && !given["value"]:
		c.Add(fault.Violation{Param: "/value", Rule: "required", Message: "value is missing: action provide needs it."})
	case word == "skip" && given["value"]:
		c.Add(fault.Violation{Param: "/value", Rule: "requires", Message: "value comes only with the action provide.", Expected: "provide"})
	}
	return a
}

// secret parses a value, which must be stored unchanged or rejected.
func (c *Checks) secret(param string, raw json.RawMessage) vault.Value {
	plain, ok := c.Text(param, raw)
	if !ok {
		return vault.Value{}
	}
	if !strictjson.IsText(raw) {
		c.Add(fault.Violation{Param: param, Rule: "format", Message: "value holds a NUL or half of a surrogate pair."})
	}
	value := vault.NewValue([]byte(plain))
	for _, v := range vault.CheckValue(value) {
		c.Add(v)
	}
	return value
}
