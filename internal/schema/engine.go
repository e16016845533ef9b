package schema

import (
	"context"
	"encoding/json"

	"github.com/qri-io/jsonschema"
)

// engine checks the limits of one subschema: bounds, lengths and counts. This file is the only one
// that imports qri-io/jsonschema, which receives nothing else. Version 0.2.1 resolves references
// over the network and in circles, reads the text "true" as a boolean and null as an absent member,
// ignores multiples beyond 2^63, compares items in quadratic time, and counts the names of a nested
// object as known names of the outer one. run implements all of that, and walks schemas and values.
type engine struct{ schema *jsonschema.Schema }

// engineSteps is the cost of one use, in steps.
const engineSteps = 8

func init() { jsonschema.LoadDraft2019_09() } // otherwise the first uses race to load it

func newEngine(n *node) (*engine, error) {
	if n.limits == nil {
		return nil, nil
	}
	text, err := json.Marshal(n.limits)
	if err != nil {
		return nil, newError(n.at, "The limits cannot be read: %v.", err)
	}
	e := &engine{&jsonschema.Schema{}}
	if err := json.Unmarshal(text, e.schema); err != nil {
		return nil, newError(n.at, "The limits cannot be read: %v.", err)
	}
	e.schema.Register("", &jsonschema.SchemaRegistry{}) // the last write: from here on the schema is shared
	return e, nil
}

// checkValue returns a message for each limit that the value violates.
func (e *engine) checkValue(value any) []string {
	state := e.schema.Validate(context.Background(), value)
	var messages []string
	for _, bad := range *state.Errs {
		messages = append(messages, bad.Message)
	}
	return messages
}
