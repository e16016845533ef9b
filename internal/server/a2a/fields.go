package a2a

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
)

// fields reads the members of an object. Unknown names are ignored, as the protocol
// requires; null equals an absent member.
type fields struct {
	*request.Checks
	at    string // JSON Pointer
	named map[string]json.RawMessage
}

func fieldsOf(c *request.Checks, at string, object json.RawMessage) fields {
	f := fields{Checks: c, at: at, named: make(map[string]json.RawMessage)}
	for _, m := range request.Members(object) {
		if string(m.Value) != "null" {
			f.named[m.Name] = m.Value
		}
	}
	return f
}

// raw is a value. Its name may be written as the protocol's definition has it, task_id, which
// readers of Protocol Buffers in JSON take beside taskId, but not with it.
func (f fields) raw(name string) json.RawMessage {
	other := capital.ReplaceAllStringFunc(name, func(c string) string { return "_" + strings.ToLower(c) })
	v := f.named[name]
	if v == nil || other == name {
		return f.named[other]
	}
	if f.named[other] != nil {
		f.Add(fault.Violation{Param: f.pointer(other), Rule: "exactly_one", Message: name + " and " + other + " are one field. Send it once."})
		delete(f.named, other) // it is reported
	}
	return v
}

// foreign refuses fields by the names that another version has for them: what they say would be
// lost.
func (f fields) foreign(v version, names map[string]string) bool {
	found := false
	for name, here := range names {
		if f.has(name) {
			found = true
			f.Add(fault.Violation{Param: f.pointer(name), Rule: "unknown", Message: name + " is of another version of A2A. In " + string(v) + " there is " + here + ".", Suggestion: here})
		}
	}
	return found
}

var capital = regexp.MustCompile(`[A-Z]`)

func (f fields) has(name string) bool { return f.raw(name) != nil }

func (f fields) pointer(name string) string { return f.at + request.Pointer(name) }

// object reads an object; where there is none it has no fields.
func (f fields) object(name string) fields {
	if raw := f.raw(name); raw != nil && f.Object(f.pointer(name), raw) {
		return fieldsOf(f.Checks, f.pointer(name), raw)
	}
	return fields{Checks: f.Checks, at: f.pointer(name)}
}

// list reads an array.
func (f fields) list(name string, most int) []json.RawMessage {
	if raw := f.raw(name); raw != nil {
		return f.Array(f.pointer(name), raw, most)
	}
	return nil
}

// objects reads an array of objects.
func (f fields) objects(name string, most int) []fields {
	var list []fields
	for i, raw := range f.list(name, most) {
		at := f.pointer(name) + "/" + strconv.Itoa(i)
		if f.Object(at, raw) {
			list = append(list, fieldsOf(f.Checks, at, raw))
		}
	}
	return list
}

// word reads a text of 1 to most characters, "" if it is absent. An empty text equals an absent
// one, as in Protocol Buffers.
func (f fields) word(name string, most int) string {
	raw := f.raw(name)
	if raw == nil || string(raw) == `""` {
		return ""
	}
	return f.Word(f.pointer(name), raw, most)
}

// needed is word, and a violation where there is none.
func (f fields) needed(name string, most int) string {
	if raw := f.raw(name); raw == nil || string(raw) == `""` {
		f.missing(name)
		return ""
	}
	return f.word(name, most)
}

func (f fields) missing(name string) {
	at := f.pointer(name)
	f.Add(fault.Violation{Param: at, Rule: "required", Message: at[1:] + " is missing."})
}

func (f fields) flag(name string) bool {
	raw := f.raw(name)
	return raw != nil && f.Boolean(f.pointer(name), raw)
}

// number reads a whole number, usual where there is none.
func (f fields) number(name string, usual, low, high int) int {
	raw := f.raw(name)
	if raw == nil {
		return usual
	}
	return f.Integer(f.pointer(name), raw, low, high)
}

// words reads an array of texts.
func (f fields) words(name string, most int) []string {
	var list []string
	for i, raw := range f.list(name, most) {
		list = append(list, f.Word(f.pointer(name)+"/"+strconv.Itoa(i), raw, 255))
	}
	return list
}

// task reads the id of a task. A malformed id is not found.
func (f fields) task(name string) (uuid.UUID, error) {
	text := f.needed(name, 255)
	if err := f.Err(); err != nil {
		return uuid.Nil, err
	}
	id, ok := request.ID(text)
	if !ok {
		return uuid.Nil, noTask(text)
	}
	return id, nil
}
