// Package request parses the JSON of callers: strictly, and with all violations at once. It defines
// messages, decisions and secrets once, for every protocol. It uses no store.
package request

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/strictjson"
	"github.com/parley-server/parley/internal/text"
)

// MaxViolations bounds a response: a body can have a hundred thousand mistakes.
const MaxViolations = 100

// Checks collects the violations of a request, so that one response reports them all.
type Checks struct{ violations []fault.Violation }

// Add records a violation, up to MaxViolations.
func (c *Checks) Add(v fault.Violation) {
	if !c.isFull() {
		c.violations = append(c.violations, v)
	}
}

func (c *Checks) isFull() bool { return len(c.violations) >= MaxViolations }

// Err returns INVALID_REQUEST with every violation, or nil.
func (c *Checks) Err() error {
	if len(c.violations) == 0 {
		return nil
	}
	return fault.Invalid(c.violations...)
}

// Type records that a value has the wrong type.
func (c *Checks) Type(param, want string) {
	article := "a"
	if strings.ContainsAny(want[:1], "aeiou") {
		article = "an"
	}
	c.Add(fault.Violation{Param: param, Rule: "type", Message: fmt.Sprintf("%s must be %s %s.", param[1:], article, want), Expected: want})
}

// Unknown records a name of a field or a parameter that does not exist, with the most similar one.
func (c *Checks) Unknown(kind, param, name string, known []string) {
	if c.isFull() {
		return
	}
	name = Short(name)
	v := fault.Violation{Param: param, Rule: "unknown", Message: fmt.Sprintf("Unknown %s %q.", kind, name)}
	for _, k := range known {
		v.Allowed = append(v.Allowed, k)
	}
	if near := search.Nearest(name, known, 1); len(near) > 0 {
		v.Suggestion = near[0]
		v.Message = fmt.Sprintf("Unknown %s %q. Did you mean %q?", kind, name, near[0])
	}
	c.Add(v)
}

// Text parses a JSON string.
func (c *Checks) Text(param string, raw json.RawMessage) (s string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		c.Type(param, "string")
		return "", false
	}
	return s, true
}

// Boolean parses true or false.
func (c *Checks) Boolean(param string, raw json.RawMessage) bool {
	switch string(raw) {
	case "true":
		return true
	case "false":
		return false
	}
	c.Type(param, "boolean")
	return false
}

// Integer parses a whole number between two bounds, in any notation.
func (c *Checks) Integer(param string, raw json.RawMessage, low, high int) int {
	f, err, ok := c.parseNumber(param, raw, "integer") // beyond its range it is infinite, and out of bounds
	if ok && err == nil && f != math.Trunc(f) {
		c.Type(param, "integer")
		ok = false
	}
	if !ok {
		return 0
	}
	return c.Within(param, f, low, high)
}

// Number parses a number between two bounds.
func (c *Checks) Number(param string, raw json.RawMessage, low, high int) float64 {
	f, err, ok := c.parseNumber(param, raw, "number")
	if ok && err == nil {
		c.Within(param, f, low, high)
	}
	return f
}

// parseNumber parses a number. ok is false if it is not one of the type; err reports that it
// exceeds a float64.
func (c *Checks) parseNumber(param string, raw json.RawMessage, kind string) (f float64, err error, ok bool) {
	var n json.Number
	if len(raw) == 0 || raw[0] == '"' || json.Unmarshal(raw, &n) != nil || n == "" {
		c.Type(param, kind)
		return 0, nil, false
	}
	f, err = strconv.ParseFloat(n.String(), 64)
	return f, err, true
}

// Within checks the bounds of a number.
func (c *Checks) Within(param string, f float64, low, high int) int {
	least, most := "at least ", "at most "
	if low == high {
		least, most = "", ""
	}
	switch {
	case f < float64(low):
		c.Add(fault.Violation{Param: param, Rule: "minimum", Message: fmt.Sprintf("%s must be %s%d.", param[1:], least, low), Expected: low})
		return 0
	case f > float64(high):
		c.Add(fault.Violation{Param: param, Rule: "maximum", Message: fmt.Sprintf("%s must be %s%d.", param[1:], most, high), Expected: high})
		return 0
	}
	return int(f)
}

// Longer records that a value exceeds its limit.
func (c *Checks) Longer(param, what string, limit int) {
	c.addViolation(param, "max_length", fmt.Sprintf("%s has more than %d %s.", param[1:], limit, what), limit)
}

// Word parses a text of 1 to limit characters, which can be stored unchanged.
func (c *Checks) Word(param string, raw json.RawMessage, limit int) string {
	s, ok := c.parseProse(param, raw, limit)
	if ok {
		c.checkStorable(param, raw)
	}
	return s
}

// Prose parses a text of 1 to limit characters.
func (c *Checks) Prose(param string, raw json.RawMessage, limit int) string {
	s, _ := c.parseProse(param, raw, limit)
	return s
}

func (c *Checks) parseProse(param string, raw json.RawMessage, limit int) (s string, ok bool) {
	s, ok = c.Text(param, raw)
	switch {
	case !ok:
	case strings.TrimSpace(s) == "":
		c.addViolation(param, "min_length", param[1:]+" is empty.", 1)
	case utf8.RuneCountInString(s) > limit:
		c.Longer(param, "characters", limit)
	default:
		return s, true
	}
	return s, false
}

// checkStorable reports a text that cannot be stored unchanged.
func (c *Checks) checkStorable(param string, raw json.RawMessage) {
	if !strictjson.IsText(raw) {
		c.addViolation(param, "format", param[1:]+" holds a NUL or half of a surrogate pair.", nil)
	}
}

// Object reports whether a value is an object, and records a violation if it is not.
func (c *Checks) Object(param string, raw json.RawMessage) bool {
	if len(raw) > 0 && raw[0] == '{' {
		return true
	}
	c.Type(param, "object")
	return false
}

// Array parses the elements of an array of at most limit.
func (c *Checks) Array(param string, raw json.RawMessage, limit int) []json.RawMessage {
	var list []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		c.Type(param, "array")
		return nil
	}
	if len(list) > limit {
		c.addViolation(param, "max_items", fmt.Sprintf("%s has more than %d items.", param[1:], limit), limit)
		return nil
	}
	return list
}

// OneOf parses one of the allowed words.
func (c *Checks) OneOf(param string, raw json.RawMessage, allowed ...string) string {
	s, ok := c.Text(param, raw)
	if !ok {
		return ""
	}
	return c.Choice(param, s, allowed...)
}

// Choice checks that a text is one of the allowed words.
func (c *Checks) Choice(param, s string, allowed ...string) string {
	v := fault.Violation{Param: param, Rule: "enum", Message: fmt.Sprintf("%s must be one of %s.", param[1:], strings.Join(allowed, ", "))}
	for _, a := range allowed {
		if a == s {
			return s
		}
		v.Allowed = append(v.Allowed, a)
	}
	c.Add(v)
	return ""
}

// Time parses a time, nil if it is invalid.
func (c *Checks) Time(param, s string) *time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		c.addViolation(param, "format", param[1:]+" is not a time like 2026-01-31T12:00:00Z.", "date-time")
		return nil
	}
	return &t
}

// ID parses an id in the one notation that the service uses. ok is false for any other text.
func ID(text string) (id uuid.UUID, ok bool) {
	id, err := uuid.Parse(text)
	return id, err == nil && len(text) == 36
}

// ID parses an id, uuid.Nil if it is invalid.
func (c *Checks) ID(param, s string) uuid.UUID {
	id, ok := ID(s)
	if !ok {
		c.addViolation(param, "format", param[1:]+" is not a UUID.", "uuid")
		return uuid.Nil
	}
	return id
}

// UUID parses the id of an object, uuid.Nil if there is none.
func (c *Checks) UUID(param string, raw json.RawMessage) uuid.UUID {
	s, ok := c.Text(param, raw)
	if !ok {
		return uuid.Nil
	}
	id, ok := ID(s)
	if ok && id == uuid.Nil {
		c.addViolation(param, "format", param[1:]+" is the nil UUID, which names nothing.", "uuid")
		return id
	}
	return c.ID(param, s)
}

// hasViolation reports whether a parameter already has a violation.
func (c *Checks) hasViolation(param string) bool {
	return slices.ContainsFunc(c.violations, func(v fault.Violation) bool { return v.Param == param })
}

// Pointer returns the JSON Pointer of a name, truncated to a readable length.
func Pointer(name string) string {
	return "/" + text.PointerToken(Short(name))
}

// Short truncates a caller's value for a response.
func Short(word string) string { return text.Truncate(word, 100) }
