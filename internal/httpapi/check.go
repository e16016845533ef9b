package httpapi

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/search"
)

// maxViolations bounds an answer: a body can be wrong a hundred thousand times.
const maxViolations = 100

// checks gathers what is wrong with a request, so that it is told all at once.
type checks struct{ violations []fault.Violation }

func (c *checks) add(v fault.Violation) {
	if !c.full() {
		c.violations = append(c.violations, v)
	}
}

func (c *checks) full() bool { return len(c.violations) >= maxViolations }

// err is INVALID_REQUEST with every violation, or nil.
func (c *checks) err() error {
	if len(c.violations) == 0 {
		return nil
	}
	return fault.Invalid(c.violations...)
}

// typ notes that a value has the wrong type.
func (c *checks) typ(param, want string) {
	article := "a"
	if want == "object" || want == "integer" {
		article = "an"
	}
	c.add(fault.Violation{Param: param, Rule: "type", Message: fmt.Sprintf("%s must be %s %s.", param[1:], article, want), Expected: want})
}

// unknown notes a name of a field or a parameter that does not exist, with the one
// that was probably meant.
func (c *checks) unknown(kind, param, name string, known []string) {
	if c.full() {
		return
	}
	name = short(name)
	v := fault.Violation{Param: param, Rule: "unknown", Message: fmt.Sprintf("There is no %s %q.", kind, name)}
	for _, k := range known {
		v.Allowed = append(v.Allowed, k)
	}
	if near := search.Nearest(name, known, 1); len(near) > 0 {
		v.Suggestion = near[0]
		v.Message = fmt.Sprintf("There is no %s %q. Did you mean %q?", kind, name, near[0])
	}
	c.add(v)
}

// text reads a JSON string.
func (c *checks) text(param string, raw json.RawMessage) (s string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		c.typ(param, "string")
		return "", false
	}
	return s, true
}

// boolean reads true or false.
func (c *checks) boolean(param string, raw json.RawMessage) bool {
	switch string(raw) {
	case "true":
		return true
	case "false":
		return false
	}
	c.typ(param, "boolean")
	return false
}

// integer reads a whole number between two bounds, however it is written.
func (c *checks) integer(param string, raw json.RawMessage, low, high int) int {
	var n json.Number
	if len(raw) == 0 || raw[0] == '"' || json.Unmarshal(raw, &n) != nil || n == "" {
		c.typ(param, "integer")
		return 0
	}
	f, err := strconv.ParseFloat(n.String(), 64) // beyond its range it is infinite, and out of bounds
	if err == nil && f != math.Trunc(f) {
		c.typ(param, "integer")
		return 0
	}
	return c.within(param, f, low, high)
}

// within checks the bounds of a number.
func (c *checks) within(param string, f float64, low, high int) int {
	switch {
	case f < float64(low):
		c.add(fault.Violation{Param: param, Rule: "minimum", Message: fmt.Sprintf("%s must be at least %d.", param[1:], low), Expected: low})
		return 0
	case f > float64(high):
		c.add(fault.Violation{Param: param, Rule: "maximum", Message: fmt.Sprintf("%s must be at most %d.", param[1:], high), Expected: high})
		return 0
	}
	return int(f)
}

// pointer is the JSON Pointer of a name, as far as it is worth repeating.
func pointer(name string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(short(name))
}

// short cuts a caller's word to what an answer repeats.
func short(word string) string {
	const limit = 100
	n := 0
	for i := range word {
		if n == limit {
			return word[:i] + "…"
		}
		n++
	}
	return word
}
