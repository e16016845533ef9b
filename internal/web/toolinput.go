package web

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// inputField is a field of a form that is made from a JSON Schema.
type inputField struct {
	Name     string // member of the input
	Field    string // name in the form
	Kind     string // text, number, integer, choice or json
	Hint     string
	Required bool
	Options  []option
}

// maxInputFields is the number of members above which the input is written as JSON.
const maxInputFields = 20

// inputFields returns the fields for an object, or nil if a form cannot express it.
func inputFields(schema json.RawMessage) (fields []inputField) {
	var s struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
		Ref        string          `json:"$ref"`
		OneOf      json.RawMessage `json:"oneOf"`
		AnyOf      json.RawMessage `json:"anyOf"`
		AllOf      json.RawMessage `json:"allOf"`
	}
	if json.Unmarshal(schema, &s) != nil || s.Ref != "" || s.OneOf != nil || s.AnyOf != nil || s.AllOf != nil {
		return nil
	}
	names, values, ok := members(s.Properties)
	if !ok || len(names) > maxInputFields {
		return nil
	}
	fields = make([]inputField, len(names))
	for i, name := range names {
		fields[i] = fieldOf(values[i])
		fields[i].Name, fields[i].Field, fields[i].Required = name, fmt.Sprintf("in%d", i), slices.Contains(s.Required, name)
	}
	return fields
}

// fieldOf returns the field of a member. A type that has no field of its own is written as JSON.
func fieldOf(schema json.RawMessage) inputField {
	f := inputField{Kind: "json"}
	var s struct {
		Type        json.RawMessage `json:"type"`
		Description string          `json:"description"`
		Enum        []any           `json:"enum"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return f
	}
	var kind string
	if json.Unmarshal(s.Type, &kind) != nil {
		var kinds []string
		_ = json.Unmarshal(s.Type, &kinds) // neither: the kind is json
		kinds = slices.DeleteFunc(kinds, func(k string) bool { return k == "null" })
		if len(kinds) == 1 {
			kind = kinds[0]
		}
	}
	f.Hint = s.Description
	switch kind {
	case "string":
		f.Kind = "text"
		for _, v := range s.Enum {
			if word, ok := v.(string); ok {
				f.Kind, f.Options = "choice", append(f.Options, option{word, word})
			}
		}
	case "number", "integer":
		f.Kind = kind
	case "boolean":
		f.Kind, f.Options = "choice", []option{{"true", "true"}, {"false", "false"}}
	}
	if f.Options != nil {
		f.Options = append([]option{{"", "–"}}, f.Options...)
	}
	if kind == "boolean" {
		f.Kind = "boolean"
	}
	return f
}

// fingerprint identifies a schema in a form.
func fingerprint(schema json.RawMessage) string {
	sum := sha256.Sum256(schema)
	return hex.EncodeToString(sum[:8])
}

// input returns the input of the form. Its errors are added to the form.
func (t *toolTest) input() json.RawMessage {
	if t.Fields == nil {
		raw := json.RawMessage(strings.TrimSpace(t.Form.Value("json")))
		if len(raw) == 0 {
			raw = json.RawMessage("{}")
		}
		if _, _, ok := members(raw); !ok || !json.Valid(raw) {
			t.Form.fail("json", "The input is a JSON object, such as {\"name\":\"Ada\"}.")
		}
		return raw
	}
	var b strings.Builder
	for _, f := range t.Fields {
		value := strings.TrimSpace(t.Form.Value(f.Field))
		if value == "" {
			if f.Required {
				t.Form.fail(f.Field, "The tool requires a value.")
			}
			continue
		}
		raw := []byte(value)
		switch f.Kind {
		case "text", "choice":
			raw, _ = json.Marshal(strings.ReplaceAll(t.Form.Value(f.Field), "\r\n", "\n")) // a text has no other errors
		case "number", "integer":
			if n := json.Number(value); !json.Valid(raw) || f.Kind == "integer" && strings.ContainsAny(value, ".eE") || !isNumber(n) {
				t.Form.fail(f.Field, "This is not a number.")
			}
		default:
			if !json.Valid(raw) {
				t.Form.fail(f.Field, "This is not JSON.")
			}
		}
		name, _ := json.Marshal(f.Name)
		fmt.Fprintf(&b, ",%s:%s", name, raw)
	}
	return json.RawMessage("{" + strings.TrimPrefix(b.String(), ",") + "}")
}

func isNumber(n json.Number) bool {
	_, err := n.Float64()
	return err == nil
}
