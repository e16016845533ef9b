package agui

import (
	"encoding/json"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
)

// ownCall is a call of one of the client's own tools.
type ownCall struct {
	input json.RawMessage
	asked bool // the client had the call in an earlier run, and has its result from itself
}

// encodeOwnCalls sends the calls that the client runs, and ends the run if they have no result yet.
func (t *Encoder) encodeOwnCalls(b event.ToolRequired, row server.Row) []any {
	out := t.closeMessage()
	for _, c := range b.Calls {
		if t.own[c.ToolUseID] = (ownCall{c.Input, row.Seen}); row.Seen {
			t.results[c.ToolUseID] = true
		}
		out = append(out, t.encodeToolCall(c.ToolUseID, c.Tool, c.Input)...)
	}
	if row.Pending {
		out = append(out, t.finishedFrame(outcome{Type: "success"}))
	}
	return out
}
