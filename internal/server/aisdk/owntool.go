package aisdk

import (
	"cmp"
	"encoding/json"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
)

// ownCall is a call of one of the client's own tools. The client knows the tools, so the parts are
// not dynamic.
type ownCall struct {
	input  json.RawMessage
	output string // the result that was posted; ToolResult has only its beginning
	asked  bool   // the client had the call in an earlier stream, and has its result from itself
}

// encodeOwnCalls sends the calls that the client runs, and ends the message if they have no result
// yet. A call that has one is for display only.
func (t *Encoder) encodeOwnCalls(b event.ToolRequired, row server.Row) []any {
	out := t.closeText()
	for _, c := range b.Calls {
		if !row.Pending {
			call := t.own[c.ToolUseID]
			call.input, call.asked = c.Input, row.Seen
			t.own[c.ToolUseID] = call
			continue
		}
		out = append(out, frame{Type: "tool-input-available", ToolCallID: c.ToolUseID, ToolName: c.Tool, Input: c.Input})
	}
	if row.Pending {
		out = append(out, t.endMessage("tool-calls")...)
	}
	return out
}

// noteReply keeps the result of a call.
func (t *Encoder) noteReply(b event.ToolReply) {
	if call, own := t.own[b.ToolUseID]; own {
		call.output = b.Output
		t.own[b.ToolUseID] = call
	}
}

// encodeOwnResult sends a call with its result, unless the client has it: another client answered,
// or none did. providerExecuted keeps the client from running the call.
func (t *Encoder) encodeOwnResult(call ownCall, b event.ToolResult) []any {
	if call.asked {
		return nil
	}
	use := frame{Type: "tool-input-available", ToolCallID: b.ToolUseID, ToolName: b.Tool, Input: call.input, ProviderExecuted: true}
	if b.OK {
		return []any{use, frame{Type: "tool-output-available", ToolCallID: b.ToolUseID, Output: outputValue(cmp.Or(call.output, b.Output)),
			ProviderExecuted: true}}
	}
	return []any{use, frame{Type: "tool-output-error", ToolCallID: b.ToolUseID, ErrorText: cmp.Or(b.Output, "The tool failed."),
		ProviderExecuted: true}}
}

// continuesOwnCalls reports whether the client's message ends with calls that the client ran. It
// would send them again and again if no other step followed.
func (t *Encoder) continuesOwnCalls() bool {
	for _, call := range t.own {
		if call.asked {
			return true
		}
	}
	return false
}

// outputValue returns a result as the client gave it: a text, or an object or a list as JSON.
func outputValue(output string) any {
	if raw := json.RawMessage(output); len(raw) > 0 && (raw[0] == '{' || raw[0] == '[') && json.Valid(raw) {
		return raw
	}
	return output
}
