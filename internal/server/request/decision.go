package request

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/event"
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

var actorField = Field[turn.Answer]{"actor", func(c *Checks, at string, raw json.RawMessage, a *turn.Answer) {
	a.Actor = c.parseActor(at, raw)
}}

var decisionFields = []Field[turn.Answer]{
	{"decision", outcomeField(map[string]event.Outcome{"allow": event.Allowed, "deny": event.Denied}, "allow", "deny")},
	{"allowlist_pattern", func(c *Checks, at string, raw json.RawMessage, a *turn.Answer) {
		a.Pattern = c.Word(at, raw, MaxPattern)
	}},
	{"reason", func(c *Checks, at string, raw json.RawMessage, a *turn.Answer) { a.Reason = DenialReason(c, at, raw) }},
	actorField,
}

var secretFields = []Field[turn.Answer]{
	{"action", outcomeField(map[string]event.Outcome{"provide": event.Provided, "skip": event.Skipped}, "provide", "skip")},
	{"value", func(c *Checks, at string, raw json.RawMessage, a *turn.Answer) { a.Value = c.Value(at, raw) }},
	actorField,
}

// outcomeField returns the parser of the word that decides; "" is the outcome of other words.
func outcomeField(outcomes map[string]event.Outcome, words ...string) func(*Checks, string, json.RawMessage, *turn.Answer) {
	return func(c *Checks, at string, raw json.RawMessage, a *turn.Answer) {
		a.Outcome = outcomes[c.OneOf(at, raw, words...)]
	}
}

// DecisionFields are all names that a decision may have over HTTP.
var DecisionFields = FieldNames(decisionFields)

// Decision parses a decision about operations. It may have the named fields; the fields besides the
// decision are for the caller to parse.
func (c *Checks) Decision(body []Member, fields []string) (a turn.Answer) {
	given := ParseMembers(c, "", body, &a, decisionFields, fields)
	switch {
	case !given["decision"]:
		c.addViolation("/decision", "required", "decision is missing: allow or deny.", nil)
	case a.Outcome == event.Allowed && given["reason"]:
		c.addViolation("/reason", "requires", "reason comes only with the decision deny.", "deny")
	case a.Outcome == event.Denied && given["allowlist_pattern"]:
		c.addViolation("/allowlist_pattern", "requires", "allowlist_pattern comes only with the decision allow.", "allow")
	}
	if a.Outcome == "" { // reported
		a.Outcome = event.Denied
	}
	return a
}

// Secret parses the answer to a secret request. Its value is passed only to the vault.
func (c *Checks) Secret(body []Member) (a turn.Answer) {
	given := ParseMembers(c, "", body, &a, secretFields, nil)
	switch {
	case !given["action"]:
		c.addViolation("/action", "required", "action is missing: provide or skip.", nil)
	case a.Outcome == event.Provided && !given["value"]:
		c.addViolation("/value", "required", "value is missing: action provide needs it.", nil)
	case a.Outcome == event.Skipped && given["value"]:
		c.addViolation("/value", "requires", "value comes only with the action provide.", "provide")
	}
	if a.Outcome == "" { // reported
		a.Outcome = event.Skipped
	}
	return a
}

// DenialReason parses the reason of a denial; an empty one counts as absent.
func DenialReason(c *Checks, at string, raw json.RawMessage) string {
	if raw == nil {
		return ""
	}
	text, _ := c.Text(at, raw)
	if utf8.RuneCountInString(text) > MaxReason {
		c.Longer(at, "characters", MaxReason)
	}
	return strings.TrimSpace(event.Plain(text))
}

// parseActor parses the name of the user behind the key. It is one line that is displayed as it is
// stored.
func (c *Checks) parseActor(param string, raw json.RawMessage) string {
	s := c.Word(param, raw, MaxActor)
	if strings.ContainsFunc(s, text.IsTerminalControl) && strictjson.IsText(raw) {
		c.addViolation(param, "format",
			"actor contains a line end, or a control or direction character. Send a name in one line without them.", nil)
	}
	return s
}

// Value parses the value of a secret, which must be stored unchanged or rejected.
func (c *Checks) Value(param string, raw json.RawMessage) vault.Value {
	plain, ok := c.Text(param, raw)
	if !ok {
		return vault.Value{}
	}
	c.checkStorable(param, raw)
	value := vault.NewValue([]byte(plain))
	for _, v := range vault.CheckValue(value) {
		c.Add(v)
	}
	return value
}
