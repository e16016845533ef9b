package turn

import (
	"encoding/json"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/fault"
)

// compile refuses every schema.
func compile(json.RawMessage) (any, error) {
	return nil, fault.New(fault.InvalidResponseSchema, "response_schema is not available.")
}

func output(raw json.RawMessage) (*agent.Output, error) {
	_, err := compile(raw)
	return nil, err
}
