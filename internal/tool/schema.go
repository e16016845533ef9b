package tool

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// Constraint narrows one member of a schema.
type Constraint func(*jsonschema.Schema)

// SchemaOf returns the JSON Schema of a tool's input, the struct T. Its members are in the order of
// T's fields; a field without omitempty is required, and the tag jsonschema is its description.
// Null is not a value, and no other member is allowed. SchemaOf panics if T has no schema, or if a
// constraint does not name a member.
func SchemaOf[T any](constraints ...Constraint) json.RawMessage {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {}, // any value
	}})
	if err != nil {
		panic(fmt.Sprintf("schema of a tool's input: %v", err))
	}
	for _, member := range s.Properties {
		if i := slices.Index(member.Types, "null"); i >= 0 && len(member.Types) == 2 { // a pointer
			member.Type, member.Types = member.Types[1-i], nil
		}
	}
	for _, narrow := range constraints {
		narrow(s)
	}
	data, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("schema of a tool's input: %v", err))
	}
	return data
}

// AtLeast sets the minimum of a number.
func AtLeast(member string, least float64) Constraint {
	return func(s *jsonschema.Schema) { property(s, member).Minimum = &least }
}

// Between sets the minimum and the maximum of a number.
func Between(member string, least, greatest float64) Constraint {
	return func(s *jsonschema.Schema) {
		p := property(s, member)
		p.Minimum, p.Maximum = &least, &greatest
	}
}

// OneOf lists the values of a text.
func OneOf(member string, values ...string) Constraint {
	return func(s *jsonschema.Schema) {
		p := property(s, member)
		for _, v := range values {
			p.Enum = append(p.Enum, v)
		}
	}
}

func property(s *jsonschema.Schema, member string) *jsonschema.Schema {
	p := s.Properties[member]
	if p == nil {
		panic("schema of a tool's input: no member " + member)
	}
	return p
}
