package request

import (
	"encoding/json"
	"fmt"

	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/turn"
)

// Message is a validated message of a caller.
type Message struct {
	turn.Request
	Stream bool
}

// MessageFields are all names that a message may have over HTTP, where a header has its key.
var MessageFields = FieldNames(messageFields[:len(messageFields)-1])

// Message validates a message as far as possible without a database. It may have only the named
// fields.
func (c *Checks) Message(body []Member, fields []string) Message {
	var m Message
	given := ParseMembers(c, "", body, &m, messageFields, fields)
	switch {
	case given["command"] && given["skill"]:
		c.addViolation("/skill", "exactly_one", "Send either command or skill, not both.", nil)
	case !given["command"] && !given["skill"]:
		c.addViolation("/command", "exactly_one", "command or skill is missing. Send one of them.", nil)
	case given["input"] && !given["skill"]:
		c.addViolation("/input", "requires", "input is for a skill; a command has none.", "skill")
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
	return c.parseOnce("Idempotency-Key", values[0])
}

// IdempotencyKey parses the key in a field.
func (c *Checks) IdempotencyKey(param string, raw json.RawMessage) string {
	key, ok := c.Text(param, raw)
	if !ok {
		return ""
	}
	return c.parseOnce(param[1:], key)
}

func (c *Checks) parseOnce(name, key string) string {
	if len(key) <= MaxIdempotencyKey && Printable(key) {
		return key
	}
	c.addViolation("/"+name, "format", fmt.Sprintf("%s must be 1 to %d printable ASCII characters, once.", name, MaxIdempotencyKey), nil)
	return ""
}

// Printable reports whether a text is printable ASCII, and not empty.
func Printable(s string) bool {
	return s != "" && text.IsPrintable(s)
}
