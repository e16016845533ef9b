package provider

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/parley-server/parley/internal/model"
)

// Form is a schema in the form that every provider accepts: an object, without alternatives at the
// top. Any other schema becomes the only member of such an object.
type Form struct {
	Schema  json.RawMessage
	wrapped bool
}

// value is the name of the member that holds a wrapped schema.
const value = "value"

// FormOf returns the form of a schema. Input that is not a schema becomes the form of an object
// without known members.
func FormOf(schema json.RawMessage) Form {
	raw := Object(schema, `{"type":"object","properties":{}}`)
	members := orderedMembers(raw)
	plain := false
	for _, m := range members {
		switch m.name {
		case "type":
			plain = string(m.value) == `"object"`
		case "$ref", "allOf", "anyOf", "oneOf", "not", "if", "enum", "const":
			return wrapMembers(members)
		}
	}
	if !plain {
		return wrapMembers(members)
	}
	return Form{Schema: raw}
}

// wrapMembers keeps the order of members, in which models write their answers. Definitions stay at
// the top, so that references to them remain valid.
func wrapMembers(members []member) Form {
	var inner, outer bytes.Buffer
	for _, m := range members {
		switch m.name {
		case "$schema":
		case "$defs", "definitions":
			outer.Write(m.afterComma())
		default:
			if inner.Len() > 0 {
				inner.WriteByte(',')
			}
			inner.Write(m.afterComma()[1:])
		}
	}
	schema := `{"type":"object","properties":{"` + value + `":{` + inner.String() + `}},"required":["` + value +
		`"],"additionalProperties":false` + outer.String() + `}`
	return Form{Schema: json.RawMessage(local.ReplaceAllStringFunc(schema, movedReference)), wrapped: true}
}

// local matches a reference to the same document. In a text its quotes would be escaped.
var local = regexp.MustCompile(`"\$ref"\s*:\s*"#[^"]*"`)

// movedReference returns a reference after its schema was wrapped.
func movedReference(ref string) string {
	at := strings.LastIndex(ref, "#") + 1
	if strings.HasPrefix(ref[at:], "/$defs/") || strings.HasPrefix(ref[at:], "/definitions/") {
		return ref
	}
	return ref[:at] + "/properties/" + value + ref[at:]
}

// Forms returns the forms of tools, by name.
func Forms(tools []model.Tool) map[string]Form {
	forms := make(map[string]Form, len(tools))
	for _, t := range tools {
		forms[t.Name] = FormOf(t.Schema)
	}
	return forms
}

// Value removes the wrapping from a value that a model wrote.
func (f Form) Value(written json.RawMessage) json.RawMessage {
	if !f.wrapped {
		return written
	}
	var outer map[string]json.RawMessage
	if json.Unmarshal(written, &outer) != nil || len(outer) != 1 || outer[value] == nil {
		return written
	}
	return outer[value]
}

// member is a member of an object, in the order of the text.
type member struct {
	name  string
	value json.RawMessage
}

// afterComma returns the member after a comma.
func (m member) afterComma() []byte {
	name, err := json.Marshal(m.name)
	if err != nil { // a string always marshals
		return nil
	}
	return append(append(append([]byte{','}, name...), ':'), m.value...)
}

func orderedMembers(object json.RawMessage) []member {
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return nil
	}
	var members []member
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil
		}
		m := member{name: name.(string)}
		if dec.Decode(&m.value) != nil {
			return nil
		}
		members = append(members, m)
	}
	return members
}
