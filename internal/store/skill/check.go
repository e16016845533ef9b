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
	// MaxInput is how many bytes of names and values one call may give.
	MaxInput = 256 << 10

	maxViolations = 100
	maxSpoken     = 10  // values of an enum that a message lists
	maxShown      = 100 // characters of a caller's name that an answer repeats
)

// Check holds inputs against the contract. What is wrong is INVALID_SKILL_INPUT
// with every violation, none of which repeats a value: inputs are confidential. A
// skill without a contract takes anything.
func (k Skill) Check(input map[string]json.RawMessage) error {
	var c check
	size := 0
	for name, value := range input {
		size += len(name) + len(value)
	}
	switch {
	case size > MaxInput:
		c.add("/input", "max_length", fault.Violation{Message: fmt.Sprintf("input is larger than %d bytes.", MaxInput), Expected: MaxInput})
	case k.Contract != nil:
		c.members("/input", k.Contract.Inputs, input)
	default:
		for _, name := range slices.Sorted(maps.Keys(input)) {
			if !json.Valid(input[name]) {
				c.typ(within("/input", name), "JSON value")
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

func (c *check) add(at, rule string, v fault.Violation) {
	if len(c.found) < maxViolations {
		v.Param, v.Rule = at, rule
		c.found = append(c.found, v)
	}
}

func (c *check) typ(at, want string) {
	article := "a"
	if strings.ContainsAny(want[:1], "aio") {
		article = "an"
	}
	c.add(at, "type", fault.Violation{Message: fmt.Sprintf("%s must be %s %s.", spoken(at), article, want), Expected: want})
}

// members checks what an object holds: the declared names first, then the others.
func (c *check) members(at string, declared []Input, given map[string]json.RawMessage) {
	known := make([]string, len(declared))
	for i, in := range declared {
		known[i] = in.Name
		value, ok := given[in.Name]
		switch {
		case ok:
			c.value(within(at, in.Name), in, value)
		case in.Required:
			c.add(within(at, in.Name), "required", fault.Violation{Message: spoken(within(at, in.Name)) + " is required.", Expected: string(in.Type)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			c.unknown(at, name, known)
		}
	}
}

func (c *check) unknown(at, name string, known []string) {
	if len(c.found) >= maxViolations {
		return
	}
	v := fault.Violation{Message: fmt.Sprintf("There is no input %q.", short(name))}
	if at != "/input" {
		v.Message = fmt.Sprintf("%s has no property %q.", spoken(at), short(name))
	}
	for _, k := range known {
		v.Allowed = append(v.Allowed, k)
	}
	if len(name) <= maxKey { // longer is no typing mistake, and dear to compare
		if near := search.Nearest(name, known, 1); len(near) > 0 {
			v.Suggestion = near[0]
			v.Message += fmt.Sprintf(" Did you mean %q?", near[0])
		}
	}
	c.add(within(at, name), "unknown", v)
}

// value checks one value, and everything in it.
func (c *check) value(at string, in Input, raw json.RawMessage) {
	raw = bytes.TrimSpace(raw)
	if !json.Valid(raw) {
		c.typ(at, string(in.Type))
		return
	}
	switch in.Type {
	case String:
		c.text(at, in, raw)
	case Enum:
		c.enum(at, in, raw)
	case Integer, Number:
		if number := raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'; !number || in.Type == Integer && !whole(string(raw)) {
			c.typ(at, string(in.Type))
		}
	case Boolean:
		if raw[0] != 't' && raw[0] != 'f' {
			c.typ(at, string(in.Type))
		}
	case Array:
		items, ok := array(raw)
		if !ok {
			c.typ(at, string(in.Type))
			return
		}
		for i, item := range items {
			if len(c.found) >= maxViolations {
				return
			}
			c.value(at+"/"+strconv.Itoa(i), *in.Items, item)
		}
	case Object:
		members, ok := object(raw)
		switch {
		case !ok:
			c.typ(at, string(in.Type))
		case in.Properties != nil:
			c.members(at, in.Properties, members)
		}
	}
}

func (c *check) text(at string, in Input, raw json.RawMessage) {
	var s string
	if raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		c.typ(at, string(in.Type))
		return
	}
	f, ok := formats[in.Format]
	if !ok {
		return
	}
	if _, err := time.Parse(f.layout, s); err != nil {
		c.add(at, "format", fault.Violation{Message: fmt.Sprintf("%s must be a %s such as %s.", spoken(at), in.Format, f.example), Expected: in.Format})
	}
}

func (c *check) enum(at string, in Input, raw json.RawMessage) {
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil && slices.Contains(in.Values, s) {
		return
	}
	v := fault.Violation{Message: fmt.Sprintf("%s must be one of %s.", spoken(at), strings.Join(in.Values[:min(len(in.Values), maxSpoken)], ", "))}
	if len(in.Values) > maxSpoken {
		v.Message = fmt.Sprintf("%s must be one of the %d allowed values.", spoken(at), len(in.Values))
	}
	for _, value := range in.Values {
		v.Allowed = append(v.Allowed, value)
	}
	c.add(at, "enum", v)
}

// array and object take a value apart that is well-formed.
func array(raw json.RawMessage) (items []json.RawMessage, ok bool) {
	return items, len(raw) > 0 && raw[0] == '[' && json.Unmarshal(raw, &items) == nil
}

func object(raw json.RawMessage) (members map[string]json.RawMessage, ok bool) {
	return members, len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, &members) == nil
}

// within is the JSON Pointer of a member.
func within(at, name string) string { return at + "/" + text.PointerToken(short(name)) }

// spoken is a JSON Pointer as a message says it.
func spoken(at string) string { return strings.TrimPrefix(strings.TrimPrefix(at, "/"), "input/") }

// short cuts a caller's name to what an answer repeats.
func short(name string) string {
	return text.Truncate(name, maxShown)
}
