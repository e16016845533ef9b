package agent

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/tool"
)

// readResult is the name of the tool that returns a result of which the model does not read the whole.
const readResult = "read_tool_result"

// One call returns so much of a result that it is not shortened itself.
const (
	maxRead      = 12_000 // characters
	maxReadBytes = tool.MaxOutput - 100
)

type readInput struct {
	ToolUseID string `json:"tool_use_id" jsonschema:"id of the call"`
	Offset    int    `json:"offset,omitempty" jsonschema:"number of characters to skip"`
}

var readTool = model.Tool{
	Name: readResult,
	Description: fmt.Sprintf(
		"Return the result of an earlier tool call that is masked or shortened in this conversation, at most %d characters at a time.", maxRead),
	Schema: tool.SchemaOf[readInput](),
}

// resultReader is the tool that returns results. It only reads the conversation, so it needs no
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
		return tool.Reject(fmt.Sprintf("No call %q has a result in this conversation. Use the id from the line that stands for the result.",
			in.ToolUseID)), nil
	}
	runes := []rune(text)
	if in.Offset < 0 || in.Offset >= len(runes) {
		return tool.Reject(fmt.Sprintf("offset %d is outside the result, which has %d characters.", in.Offset, len(runes))), nil
	}
	part := string(runes[in.Offset:min(in.Offset+maxRead, len(runes))])
	if len(part) > maxReadBytes {
		part = strings.ToValidUTF8(part[:maxReadBytes], "")
	}
	end := in.Offset + utf8.RuneCountInString(part)
	if end < len(runes) {
		part += fmt.Sprintf("\n[%d of %d characters; continue with offset %[1]d]", end, len(runes))
	}
	return tool.Result{OK: true, Output: part}, nil
}

// findResult returns the complete result of a call by the id that the model sees.
func (r *run) findResult(ctx context.Context, id string) (output string, ok bool, err error) {
	units, _ := r.visibleUnits(len(r.state.steps))
	for _, u := range units {
		for i, m := range u.messages {
			if m.Role != model.ToolRole || m.CallID != id {
				continue
			}
			if out, ok := u.shortened[i]; ok {
				return r.wholeOutput(ctx, out)
			}
			return m.Text, true, nil
		}
	}
	if r.FindResult == nil || r.compaction == nil {
		return "", false, nil
	}
	out, ok, err := r.FindResult(ctx, id)
	if err != nil || !ok {
		return "", false, err
	}
	return r.wholeOutput(ctx, out)
}

// wholeOutput returns an output from the log, or from its file if the log has only a part. The
// agent may have removed the file or replaced it, and a fork has no file of its parent: then the
// part is returned.
func (r *run) wholeOutput(ctx context.Context, out event.ToolOutput) (output string, ok bool, err error) {
	if out.File == "" || out.Size == len(out.Output) || r.ReadResult == nil {
		return out.Output, true, nil
	}
	output, err = r.ReadResult(ctx, out.File)
	if ctx.Err() != nil {
		return "", false, context.Cause(ctx)
	}
	if err != nil {
		r.Log.WarnContext(ctx, "read the file of a result; the log has a part of it", "file", out.File, "err", err)
		return out.Output, true, nil
	}
	if output = event.Plain(output); digestOutput(output) != out.SHA256 {
		return out.Output, true, nil
	}
	return output, true, nil
}
