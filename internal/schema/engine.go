package schema

import (
	"context"
	"encoding/json"

	"github.com/qri-io/jsonschema"
)

// engine checks the limits of one subschema: bounds, lengths and counts. This file
// is the only door to qri-io/jsonschema, which gets nothing else. Its v0.2.1 resolves
// references over the network and in circles, takes the text "true" for a boolean and
// null for an absent member, knows no multiple beyond 2^63, compares items in
// quadratic time, and lets the names of a nested object count as known ones of the
// outer. All that, and walking schemas and values, is run's.
type engine struct{ schema *jsonschema.Schema }

// engineSteps is what a use costs.
const engineSteps = 8

func init() { jsonschema.LoadDraft2019_09() } // else the first uses race for it

func newEngine(n *node) (*engine, error) {
	if n.limits == nil {
		return nil, nil
	}
	text, err := json.Marshal(n.limits)
	if err != nil {
		return nil, refuse(n.at, "The limits cannot be read: %v.", err)
	}
	e := &engine{&jsonschema.Schema{}}
	if err := json.Unmarshal(text, e.schema); err != nil {
		return nil, refuse(n.at, "The limits cannot be read: %v.", err)
	}
	e.schema.Register("", &jsonschema.SchemaRegistry{}) // its only writing access: from here on it is shared
	return e, nil
}

// check returns what is wrong, in words.
func (e *engine) check(value any) []string {
	state := e.schema.Validate(context.Background(), value)
	var messages []string
	for _, bad := range *state.Errs {
		messages = append(messages, bad.Message)
	}
	return messages
}
