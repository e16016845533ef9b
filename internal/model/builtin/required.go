package builtin

import (
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/schema"
)

// requestSecret is the agent's tool for credentials.
const requestSecret = "request_secret"

// lastTool returns the last of the tools that is not the agent's own, or nil. The tools of a caller
// come last.
func lastTool(tools []model.Tool) *model.Tool {
	for i := len(tools) - 1; i >= 0; i-- {
		if name := tools[i].Name; name != finalAnswer && name != requestSecret {
			return &tools[i]
		}
	}
	return nil
}

// requiredCall ends a reply with a call, because text alone is not accepted. Its input fits the
// schema of the tool and is made from the words of the reply.
func (c conversation) requiredCall(r reply) reply {
	input := "{}"
	if s, err := schema.Compile(c.required.Schema); err == nil {
		if sample, ok := s.Sample(saidText(r)); ok {
			input = string(sample)
		}
	}
	r.calls = []event.ToolCall{{Tool: c.required.Name, Input: model.Input(input)}}
	return r
}
