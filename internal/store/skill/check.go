package skill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/text"
)

const (
	// MaxInput is the maximum size in bytes of the names and values in one call.
	MaxInput = 256 << 10

	maxViolations = 100
	maxSpoken     = 10  // values of an enum that a message lists
	maxShown      = 100 // characters of a caller's name that a response repeats
)

// Check checks inputs against the contract. It returns INVALID_SKILL_INPUT with every violation,
// none of which repeats a value: inputs are confidential. A skill without a contract accepts any
// inputs.
func (k Skill) Check(input map[string]json.RawMessage) error {
	var c check
	size := 0
	for name, value := range input {
		size += len(name) + len(value)
	}
	switch {
	case size > MaxInput:
		c.addViolation("/input", "max_length", fault.Violation{Message: fmt.Sprintf("input is larger than %d bytes.", MaxInput),
			Expected: MaxInput})
	case k.Contract != nil:
		c.checkMembers("/input", k.Contract.Inputs, input)
	default:
		for _, name := range slices.Sorted(maps.Keys(input)) {
			if !json.Valid(input[name]) {
				c.checkType(memberPointer("/input", name), "JSON value")
			}
		}
	}
	if len(c.found) == 0 {
		return nil
	}
	err := fault.Invalid(c.found...)
	err.Code = fault.InvalidSkillInput
	return err
}

// check gathers violations.
type check struct{ found []fault.Violation }

func (c *check) addViolation(at, rule string, v fault.Violation) {
	if len(c.found) < maxViolations {
		v.Param, v.Rule = at, rule
		c.found = append(c.found, v)
	}
}

func (c *check) checkType(at, want string) {
	article := "a"
	if strings.ContainsAny(want[:1], "aio") {
		article = "an"
	}
	c.addViolation(at, "type", fault.Violation{Message: fmt.Sprintf("%s must be %s %s.", shownPointer(at), article, want), Expected: want})
}

// checkMembers checks the members of an object: the declared names first, then the others.
func (c *check) checkMembers(at string, declared []Input, given map[string]json.RawMessage) {
	known := make([]string, len(declared))
	for i, in := range declared {
		known[i] = in.Name
		value, ok := given[in.Name]
		switch {
		case ok:
			c.checkValue(memberPointer(at, in.Name), in, value)
		case in.Required:
			c.addViolation(memberPointer(at, in.Name), "required", fault.Violation{Message: shownPointer(memberPointer(at,
				in.Name)) + " is required.", Expected: string(in.Type)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			c.rejectUnknown(at, name, known)
		}
	}
}

func (c *check) rejectUnknown(at, name string, known []string) {
	if len(c.found) >= maxViolations {
		return
	}
	v := fault.Violation{Message: fmt.Sprintf("Unknown input %q.", shortName(name))}
	if at != "/input" {
		v.Message = fmt.Sprintf("%s has no property %q.", shownPointer(at), shortName(name))
	}
	for _, k := range known {
		v.Allowed = append(v.Allowed, k)
	}
	if len(name) <= maxKey { // a longer name is not a typing mistake, and expensive to compare
		if near := search.Nearest(name, known, 1); len(near) > 0 {
			v.Suggestion = near[0]
			v.Message += fmt.Sprintf(" Did you mean %q?", near[0])
		}
	}
	c.addViolation(memberPointer(at, name), "unknown", v)
}

// checkValue checks one value, and everything in it.
func (c *check) checkValue(at string, in Input, raw json.RawMessage) {
	raw = bytes.TrimSpace(raw)
	if !json.Valid(raw) {
		c.checkType(at, string(in.Type))
		return
	}
	switch in.Type {
	case String:
		c.checkText(at, in, raw)
	case Enum:
		c.checkEnum(at, in, raw)
	case Integer, Number:
		if number := raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'; !number || in.Type == Integer && !isWholeNumber(string(raw)) {
			c.checkType(at, string(in.Type))
		}
	case Boolean:
		if raw[0] != 't' && raw[0] != 'f' {
			c.checkType(at, string(in.Type))
		}
	case Array:
		items, ok := readArray(raw)
		if !ok {
			c.checkType(at, string(in.Type))
			return
		}
		for i, item := range items {
			if len(c.found) >= maxViolations {
				return
			}
			c.checkValue(at+"/"+strconv.Itoa(i), *in.Items, item)
		}
	case Object:
		members, ok := readObject(raw)
		switch {
		case !ok:
			c.checkType(at, string(in.Type))
		case in.Properties != nil:
			c.checkMembers(at, in.Properties, members)
		}
	}
}

func (c *check) checkText(at string, in Input, raw json.RawMessage) {
	var s string
	if raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		c.checkType(at, string(in.Type))
		return
	}
	f, ok := formats[in.Format]
	if !ok {
		return
	}
	if _, err := time.Parse(f.layout, s); err != nil {
		c.addViolation(at, "format", fault.Violation{Message: fmt.Sprintf("%s must be a %s such as %s.", shownPointer(at), in.Format,
			f.example), Expected: in.Format})
	}
}

func (c *check) checkEnum(at string, in Input, raw json.RawMessage) {
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil && slices.Contains(in.Values, s) {
		return
	}
	v := fault.Violation{Message: fmt.Sprintf("%s must be one of %s.", shownPointer(at),
		strings.Join(in.Values[:min(len(in.Values), maxSpoken)], ", "))}
	if len(in.Values) > maxSpoken {
		v.Message = fmt.Sprintf("%s must be one of the %d allowed values.", shownPointer(at), len(in.Values))
	}
	for _, value := range in.Values {
		v.Allowed = append(v.Allowed, value)
	}
	c.addViolation(at, "enum", v)
}

// readArray and object split a well-formed value.
func readArray(raw json.RawMessage) (items []json.RawMessage, ok bool) {
	return items, len(raw) > 0 && raw[0] == '[' && json.Unmarshal(raw, &items) == nil
}

func readObject(raw json.RawMessage) (members map[string]json.RawMessage, ok bool) {
	return members, len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, &members) == nil
}

// memberPointer returns the JSON Pointer of a member.
func memberPointer(at, name string) string { return at + "/" + text.PointerToken(shortName(name)) }

// shownPointer returns a JSON Pointer in the form of a message.
func shownPointer(at string) string { return strings.TrimPrefix(strings.TrimPrefix(at, "/"), "input/") }

// shortName truncates a caller's name for a response.
func shortName(name string) string {
	return text.Truncate(name, maxShown)
}
