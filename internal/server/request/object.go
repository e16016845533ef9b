package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/strictjson"
)

// The limits of a body's content, besides its size. Without them 8 MiB of members cost 11 s of CPU,
// and 8 MiB of array elements 1.8 s.
const (
	MaxDepth   = strictjson.MaxDepth
	MaxMembers = 10_000  // members of one object
	MaxValues  = 200_000 // values of a body: names of members and elements of arrays
)

// Member is one name and value of a JSON object, as it was sent.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Object parses a JSON object strictly: nothing after it, no name twice, no nesting beyond
// MaxDepth, at most MaxMembers in an object and MaxValues in all, UTF-8 throughout.
func Object(body []byte) ([]Member, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, fault.New(fault.InvalidJSON, "The body is empty.")
	}
	if !utf8.Valid(body) {
		return nil, fault.New(fault.InvalidJSON, "The body is not UTF-8.")
	}
	if isTooDeep(body) {
		return nil, fault.New(fault.InvalidJSON, "The body is nested deeper than %d levels.", MaxDepth)
	}
	var whole json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		var at int64
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = syntax.Offset
		}
		return nil, fault.New(fault.InvalidJSON, "The body is not JSON: %s at byte %d.", err, at)
	}
	if bad, ok := errors.AsType[*strictjson.Error](strictjson.CheckLimits(body, strictjson.Limits{Members: MaxMembers,
		Values: MaxValues})); ok {
		return nil, limitError(bad)
	}
	if body = bytes.TrimSpace(body); body[0] != '{' {
		return nil, fault.Invalid(fault.Violation{Param: "", Rule: "type", Message: "The body must be a JSON object.", Expected: "object"})
	}
	return Members(body), nil
}

// limitError returns the error for a body whose content exceeds a limit.
func limitError(bad *strictjson.Error) *fault.Error {
	switch bad.Problem {
	case strictjson.Duplicate:
		return fault.New(fault.InvalidJSON, "The name %q appears twice in one object.", Short(bad.Name))
	case strictjson.Members:
		return fault.New(fault.InvalidJSON, "An object has more than %d members. Send fewer.", MaxMembers)
	case strictjson.Values:
		return fault.New(fault.InvalidJSON, "The body holds more than %d values. Send fewer.", MaxValues)
	}
	return fault.New(fault.InvalidJSON, "The body is not JSON: %s.", bad)
}

// isTooDeep reports whether a body opens more than MaxDepth levels, even if it is not JSON: the
// parser has another limit, with another error.
func isTooDeep(body []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// Members returns the members of a JSON object that is known to be well-formed.
func Members(object []byte) []Member {
	dec := json.NewDecoder(bytes.NewReader(object))
	_, _ = dec.Token()
	var list []Member
	for dec.More() {
		name, _ := dec.Token()
		var value json.RawMessage
		_ = dec.Decode(&value)
		text, _ := name.(string)
		list = append(list, Member{text, value})
	}
	return list
}

// Given returns the members whose value is not null: an explicit null equals an absent member.
func Given(members []Member) []Member {
	return slices.DeleteFunc(members, func(m Member) bool { return string(m.Value) == "null" })
}
