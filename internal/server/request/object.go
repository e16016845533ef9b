package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/fault"
)

// MaxDepth is the maximum depth of nesting in a body.
const MaxDepth = 64

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
	if deep(body) {
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
	if err := checkMembers(body); err != nil {
		return nil, err
	}
	if body = bytes.TrimSpace(body); body[0] != '{' {
		return nil, fault.Invalid(fault.Violation{Param: "", Rule: "type", Message: "The body must be a JSON object.", Expected: "object"})
	}
	return Members(body), nil
}

// deep reports whether a body opens more than MaxDepth levels, even if it is not JSON: the parser
// has another limit, with another error.
func deep(body []byte) bool {
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

// Unsound reports whether a well-formed JSON string contains NUL, or half of a surrogate pair,
// which no text can contain.
func Unsound(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++ // to the escaped character
		if raw[i] != 'u' {
			continue
		}
		unit := hex4(raw[i+1:])
		i += 4
		switch {
		case unit == 0, unit >= 0xdc00 && unit < 0xe000:
			return true
		case unit >= 0xd800 && unit < 0xdc00:
			if i+6 >= len(raw) || raw[i+1] != '\\' || raw[i+2] != 'u' {
				return true
			}
			if low := hex4(raw[i+3:]); low < 0xdc00 || low >= 0xe000 {
				return true
			}
			i += 6
		}
	}
	return false
}

// hex4 parses four hexadecimal digits.
func hex4(p []byte) (n rune) {
	for _, c := range p[:4] {
		n <<= 4
		switch {
		case c >= 'a':
			n |= rune(c - 'a' + 10)
		case c >= 'A':
			n |= rune(c - 'A' + 10)
		default:
			n |= rune(c - '0')
		}
	}
	return n
}
