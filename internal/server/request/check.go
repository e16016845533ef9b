// Package request parses the JSON of callers: strictly, and with all violations at once. It defines
// messages, decisions and secrets once, for every protocol. It uses no store.
package request

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/text"
)

// MaxViolations bounds a response: a body can have a hundred thousand mistakes.
const MaxViolations = 100

// Checks collects the violations of a request, so that one response reports them all.
type Checks struct{ violations []fault.Violation }

// Add records a violation, up to MaxViolations.
func (c *Checks) Add(v fault.Violation) {
	if !c.full() {
		c.violations = append(c.violations, v)
	}
}

func (c *Checks) full() bool { return len(c.violations) >= MaxViolations }

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
	if c.full() {
		return
	}
	name = Short(name)
	v := fault.Violation{Param: param, Rule: "unknown", Message: fmt.Sprintf("There is no %s %q.", kind, name)}
	for _, k := range known {
		v.Allowed = append(v.Allowed, k)
	}
	if near := search.Nearest(name, known, 1); len(near) > 0 {
		v.Suggestion = near[0]
		v.Message = fmt.Sprintf("There is no %s %q. Did you mean %q?", kind, name, near[0])
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
	var n json.Number
	if len(raw) == 0 || raw[0] == '"' || json.Unmarshal(raw, &n) != nil || n == "" {
		c.Type(param, "integer")
		return 0
	}
	f, err := strconv.ParseFloat(n.String(), 64) // beyond its range it is infinite, and out of bounds
	if err == nil && f != math.Trunc(f) {
		c.Type(param, "integer")
		return 0
	}
	return c.Within(param, f, low, high)
}

// Within checks the bounds of a number.
func (c *Checks) Within(param string, f float64, low, high int) int {
	switch {
	case f < float64(low):
		c.Add(fault.Violation{Param: param, Rule: "minimum", Message: fmt.Sprintf("%s must be at least %d.", param[1:], low), Expected: low})
		return 0
	case f > float64(high):
		c.Add(fault.Violation{Param: param, Rule: "maximum", Message: fmt.Sprintf("%s must be at most %d.", param[1:], high), Expected: high})
		return 0
	}
	return int(f)
}

// Pointer returns the JSON Pointer of a name, truncated to a readable length.
func Pointer(name string) string {
	return "/" + text.PointerToken(Short(name))
}

// Short truncates a caller's value for a response.
func Short(word string) string { return text.Truncate(word, 100) }
