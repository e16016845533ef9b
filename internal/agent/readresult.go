package agent

import (
	"context"
	"fmt"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/tool"
)

// readResult is the name of the tool that returns a masked result.
const readResult = "read_tool_result"

// maxRead is how many characters of a result one call returns.
const maxRead = 12_000

type readInput struct {
	ToolUseID string `json:"tool_use_id" jsonschema:"id of the call whose result is masked"`
	Offset    int    `json:"offset,omitempty" jsonschema:"number of characters to skip"`
}

var readTool = model.Tool{
	Name:        readResult,
	Description: fmt.Sprintf("Return the result of an earlier tool call that is masked in this conversation, at most %d characters at a time.", maxRead),
	Schema:      tool.SchemaOf[readInput](),
}

// resultReader is the tool that returns masked results. It only reads the conversation, so it needs no
// permission.
type resultReader struct{ r *run }

// Spec implements tool.Tool.
func (t resultReader) Spec() tool.Spec {
	return tool.Spec{Name: readTool.Name, Description: readTool.Description, Schema: readTool.Schema, Idempotent: true}
}

// Call implements tool.Tool.
func (t resultReader) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	var in readInput
	if wrong := tool.Decode(call.Input, &in); wrong != "" {
		return tool.Reject(wrong), nil
	}
	text, ok, err := t.r.findResult(ctx, in.ToolUseID)
	if err != nil {
		return tool.Result{}, err
	}
	if !ok {
		return tool.Reject(fmt.Sprintf("No call %q has a result in this conversation. Use the id from the line that stands for the result.", in.ToolUseID)), nil
	}
	runes := []rune(text)
	if in.Offset < 0 || in.Offset >= len(runes) {
		return tool.Reject(fmt.Sprintf("offset %d is outside the result, which has %d characters.", in.Offset, len(runes))), nil
	}
	end := min(in.Offset+maxRead, len(runes))
	part := string(runes[in.Offset:end])
	if end < len(runes) {
		part += fmt.Sprintf("\n[%d of %d characters; continue with offset %[1]d]", end, len(runes))
	}
	return tool.Result{OK: true, Output: part}, nil
}

// findResult returns the complete result of a call by the id that the model sees.
func (r *run) findResult(ctx context.Context, id string) (output string, ok bool, err error) {
	units, _ := r.visibleUnits(len(r.state.steps))
	for _, u := range units {
		for _, m := range u.messages {
			if m.Role == model.ToolRole && m.CallID == id {
				return m.Text, true, nil
			}
		}
	}
	if r.FindResult == nil || r.compaction == nil {
		return "", false, nil
	}
	return r.FindResult(ctx, id)
}
