package request

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
)

// Fields parses the members of one JSON object by their names and records violations in Checks. A
// null member is absent. The zero value, with Checks, is an object without members.
type Fields struct {
	*Checks
	At      string   // JSON Pointer to the object
	Members []Member // none of them null
	// ProtoJSON parses the object as Protocol Buffers do: task_id is equal to taskId, and an empty
	// string to an absent one.
	ProtoJSON bool
}

// Raw returns the value of a member, nil if it is absent.
func (f Fields) Raw(name string) json.RawMessage {
	value := f.findMember(name)
	if !f.ProtoJSON {
		return value
	}
	other := capital.ReplaceAllStringFunc(name, func(c string) string { return "_" + strings.ToLower(c) })
	if value == nil || other == name {
		return f.findMember(other)
	}
	if at := f.Pointer(other); f.findMember(other) != nil && !f.hasViolation(at) {
		f.Add(fault.Violation{Param: at, Rule: "exactly_one", Message: name + " and " + other + " are one field. Send it once."})
	}
	return value
}

var capital = regexp.MustCompile(`[A-Z]`)

func (f Fields) findMember(name string) json.RawMessage {
	for _, m := range f.Members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Has reports whether a member is present.
func (f Fields) Has(name string) bool { return f.Raw(name) != nil }

// Pointer returns the JSON Pointer of a member.
func (f Fields) Pointer(name string) string { return f.At + Pointer(name) }

// Without returns the members except those with the given names.
func (f Fields) Without(names ...string) []Member {
	return slices.DeleteFunc(slices.Clone(f.Members), func(m Member) bool { return slices.Contains(names, m.Name) })
}

// Missing records that a required member is absent.
func (f Fields) Missing(name string) {
	at := f.Pointer(name)
	f.Add(fault.Violation{Param: at, Rule: "required", Message: at[1:] + " is missing."})
}

// Require records a violation if a member is absent, and reports whether it is present.
func (f Fields) Require(name string) bool {
	raw := f.Raw(name)
	if raw == nil || f.ProtoJSON && string(raw) == `""` {
		f.Missing(name)
		return false
	}
	return true
}

// String parses a text of 1 to limit characters, "" if it is absent.
func (f Fields) String(name string, limit int) string {
	raw := f.Raw(name)
	if raw == nil || f.ProtoJSON && string(raw) == `""` {
		return ""
	}
	return f.Word(f.Pointer(name), raw, limit)
}

// RequiredString is String for a member that must be present.
func (f Fields) RequiredString(name string, limit int) string {
	if !f.Require(name) {
		return ""
	}
	return f.String(name, limit)
}

// RequiredText parses a text that must be present and may be empty.
func (f Fields) RequiredText(name string) string {
	if !f.Require(name) {
		return ""
	}
	at, raw := f.Pointer(name), f.Raw(name)
	s, ok := f.Text(at, raw)
	if ok {
		f.checkStorable(at, raw)
	}
	return s
}

// RequiredID parses a UUID that must be present.
func (f Fields) RequiredID(name string) uuid.UUID {
	if !f.Require(name) {
		return uuid.Nil
	}
	return f.UUID(f.Pointer(name), f.Raw(name))
}

// Enum parses one of the allowed words, "" if it is absent.
func (f Fields) Enum(name string, allowed ...string) string {
	raw := f.Raw(name)
	if raw == nil {
		return ""
	}
	return f.OneOf(f.Pointer(name), raw, allowed...)
}

// Int parses an integer between two bounds; the default is usual.
func (f Fields) Int(name string, usual, low, high int) int {
	raw := f.Raw(name)
	if raw == nil {
		return usual
	}
	return f.Integer(f.Pointer(name), raw, low, high)
}

// Bool parses true or false; the default is false.
func (f Fields) Bool(name string) bool {
	raw := f.Raw(name)
	return raw != nil && f.Boolean(f.Pointer(name), raw)
}

// Time parses a time, nil if it is absent.
func (f Fields) Time(name string) *time.Time {
	text := f.String(name, 64)
	if text == "" {
		return nil
	}
	return f.Checks.Time(f.Pointer(name), text)
}

// Nested returns the fields of an object in this one, at a JSON Pointer.
func (f Fields) Nested(at string, object json.RawMessage) Fields {
	return Fields{Checks: f.Checks, At: at, Members: Given(Members(object)), ProtoJSON: f.ProtoJSON}
}

// Child parses an object. It has no members if it is absent.
func (f Fields) Child(name string) Fields {
	at := f.Pointer(name)
	if raw := f.Raw(name); raw != nil && f.Object(at, raw) {
		return f.Nested(at, raw)
	}
	return Fields{Checks: f.Checks, At: at, ProtoJSON: f.ProtoJSON}
}

// List parses an array of at most limit elements.
func (f Fields) List(name string, limit int) []json.RawMessage {
	if raw := f.Raw(name); raw != nil {
		return f.Array(f.Pointer(name), raw, limit)
	}
	return nil
}

// Children parses an array of objects.
func (f Fields) Children(name string, limit int) []Fields {
	var list []Fields
	for i, raw := range f.List(name, limit) {
		if at := f.Pointer(name) + "/" + strconv.Itoa(i); f.Object(at, raw) {
			list = append(list, f.Nested(at, raw))
		}
	}
	return list
}

// Strings parses an array of texts of 1 to 255 characters.
func (f Fields) Strings(name string, limit int) []string {
	var list []string
	for i, raw := range f.List(name, limit) {
		list = append(list, f.Word(f.Pointer(name)+"/"+strconv.Itoa(i), raw, 255))
	}
	return list
}
