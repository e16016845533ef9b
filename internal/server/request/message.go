package request

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/strictjson"
	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/turn"
)

// The limits of a message, besides those of its fields.
const (
	MaxCommand         = 200_000 // characters
	MaxCallerID        = 255     // bytes
	MaxResponseSeconds = 3600
	MaxTurns           = 200
	MaxCost            = 1_000_000 // US dollars
	MaxIdempotencyKey  = 255       // characters
)

// Message is a validated message of a caller.
type Message struct {
	turn.Request
	Stream bool
}

// MessageFields and limitFields are all names that a message may have over HTTP.
var (
	MessageFields = []string{"command", "skill", "input", "secret_input", "caller_id", "session_id", "response_schema", "stream",
		"callback", "attachments", "multitask_strategy", "limits"}
	limitFields = []string{"max_response_seconds", "max_turns", "max_cost_usd"}
)

// Message validates a message as far as possible without a database. It may have only the named
// fields.
func (c *Checks) Message(body []Member, fields []string) Message {
	var m Message
	given := make(map[string]bool)
	for _, f := range body {
		param := Pointer(f.Name)
		if !slices.Contains(fields, f.Name) {
			c.Unknown("field", param, f.Name, fields)
			continue
		}
		given[f.Name] = true
		switch f.Name {
		case "command":
			m.Command = c.command(param, f.Value)
		case "skill":
			m.Skill = c.skill(param, f.Value)
		case "input":
			m.Input = c.input(param, f.Value)
		case "secret_input":
			m.Secrets = c.secretInput(param, f.Value)
		case "caller_id":
			m.CallerID = c.callerID(param, f.Value)
		case "session_id":
			m.Session = c.UUID(param, f.Value)
		case "response_schema":
			m.Schema = c.responseSchema(param, f.Value)
		case "stream":
			m.Stream = c.Boolean(param, f.Value)
		case "callback":
			m.Callback = c.callback(param, f.Value)
		case "attachments":
			m.Attachments = c.attachments(param, f.Value)
		case "multitask_strategy":
			m.Multitask = turn.Multitask(c.OneOf(param, f.Value, string(turn.Reject), string(turn.Enqueue), string(turn.Interrupt)))
		case "limits":
			m.Limits = c.limits(param, f.Value)
		case "idempotency_key":
			m.IdempotencyKey = c.IdempotencyKey(param, f.Value)
		}
	}
	switch {
	case given["command"] && given["skill"]:
		c.Add(fault.Violation{Param: "/skill", Rule: "exactly_one", Message: "Send either command or skill, not both."})
	case !given["command"] && !given["skill"]:
		c.Add(fault.Violation{Param: "/command", Rule: "exactly_one", Message: "command or skill is missing. Send one of them."})
	case given["input"] && !given["skill"]:
		c.Add(fault.Violation{Param: "/input", Rule: "requires", Message: "input is for a skill; a command has none.", Expected: "skill"})
	}
	if !given["stream"] {
		m.Stream = m.Callback == nil
	}
	return m
}

// Once parses the header Idempotency-Key.
func (c *Checks) Once(values []string) string {
	if len(values) == 0 {
		return ""
	}
	if len(values) > 1 {
		values = []string{""} // an empty key is not valid
	}
	return c.once("Idempotency-Key", values[0])
}

// IdempotencyKey parses the key in a field.
func (c *Checks) IdempotencyKey(param string, raw json.RawMessage) string {
	key, ok := c.Text(param, raw)
	if !ok {
		return ""
	}
	return c.once(param[1:], key)
}

func (c *Checks) once(name, key string) string {
	if len(key) <= MaxIdempotencyKey && Printable(key) {
		return key
	}
	c.Add(fault.Violation{Param: "/" + name, Rule: "format", Message: fmt.Sprintf("%s must be 1 to %d printable ASCII characters, once.", name, MaxIdempotencyKey)})
	return ""
}

// Printable reports whether a text is printable ASCII, and not empty.
func Printable(s string) bool {
	return s != "" && text.IsPrintable(s)
}

func (c *Checks) command(param string, raw json.RawMessage) string {
	s, ok := c.Text(param, raw)
	switch {
	case !ok:
	case strings.TrimSpace(s) == "":
		c.Add(fault.Violation{Param: param, Rule: "min_length", Message: "command is empty.", Expected: 1})
	case utf8.RuneCountInString(s) > MaxCommand:
		c.Add(fault.Violation{Param: param, Rule: "max_length", Message: fmt.Sprintf("command has more than %d characters.", MaxCommand), Expected: MaxCommand})
	}
	return s
}

// callerID rejects an id that cannot be stored unchanged: with replaced characters, two callers
// could become one.
func (c *Checks) callerID(param string, raw json.RawMessage) string {
	s, ok := c.Text(param, raw)
	switch {
	case !ok:
	case s == "":
		c.Add(fault.Violation{Param: param, Rule: "min_length", Message: "caller_id is empty. Leave it out for a new session.", Expected: 1})
	case len(s) > MaxCallerID:
		c.Add(fault.Violation{Param: param, Rule: "max_length", Message: fmt.Sprintf("caller_id has more than %d bytes.", MaxCallerID), Expected: MaxCallerID})
	case !strictjson.IsText(raw):
		c.Add(fault.Violation{Param: param, Rule: "format", Message: "caller_id holds a NUL or half of a surrogate pair."})
	}
	return s
}
