package builtin

import (
	"encoding/json"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/text"
)

// useTool returns a reply that only calls a tool.
func useTool(tool string, input map[string]string) reply {
	return reply{calls: []event.ToolCall{askFor(tool, input)}}
}

// askFor returns a call. Its input is a map of plain values.
func askFor(tool string, input any) event.ToolCall {
	raw, err := json.Marshal(input)
	if err != nil { // such a map always marshals
		raw = []byte("{}")
	}
	return event.ToolCall{Tool: tool, Input: raw}
}

// findResult returns the first result of a tool in this turn.
func (c conversation) findResult(tool string) (result, bool) {
	for _, r := range c.results {
		if r.call.Tool == tool {
			return r, true
		}
	}
	return result{}, false
}

// argumentOf returns a string argument of a call.
func argumentOf(call event.ToolCall, name, otherwise string) string {
	var input map[string]any
	if json.Unmarshal(call.Input, &input) == nil {
		if s, ok := input[name].(string); ok {
			return s
		}
	}
	return otherwise
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return text.Truncate(line, 500)
}
