// Package files contains the tool write, with which an agent writes a file of its session's folder
// without a command.
package files

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-server/parley/internal/text/render"
	"github.com/parley-server/parley/internal/tool"
)

const (
	maxContent = 2 << 20  // bytes of a file
	maxInput   = 12 << 20 // bytes of a call's input: JSON may write a byte as six
	maxShown   = 80       // characters of a path in a summary
)

// Folder holds the session's files.
type Folder interface {
	// Write creates a file, with its directories, or replaces its content. A file that cannot be
	// written is a tool.Refusal.
	Write(ctx context.Context, call tool.Call, path string, content []byte) error
}

// Tool returns the tool over folder.
func Tool(folder Folder) tool.Tool { return write{folder} }

type write struct{ folder Folder }

type input struct {
	Path    string  `json:"path" jsonschema:"relative to the folder, such as reports/march.md"`
	Content *string `json:"content" jsonschema:"whole content, at most 2 MiB"`
}

var inputSchema = tool.SchemaOf[input]()

// Spec implements tool.Tool.
func (write) Spec() tool.Spec {
	return tool.Spec{
		Name:        "write",
		Description: "Write a text file of this session's folder, which commands see as /workspace. What was in it is replaced.",
		Schema:      inputSchema,
		Idempotent:  true,
	}
}

// Summary implements tool.Summarizer.
func (write) Summary(raw json.RawMessage) string {
	in, wrong := parseInput(raw)
	if wrong != "" {
		return "write a file"
	}
	return fmt.Sprintf("write %s (%d bytes)", render.Argument(in.Path, maxShown), len(*in.Content))
}

// Call implements tool.Tool.
func (t write) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	in, wrong := parseInput(call.Input)
	if wrong != "" {
		return tool.Reject(wrong), nil
	}
	if err := t.folder.Write(ctx, call, in.Path, []byte(*in.Content)); err != nil {
		return tool.Result{}, err
	}
	return tool.Result{OK: true, Output: fmt.Sprintf("Wrote %s, %d bytes.", render.Argument(in.Path, maxShown), len(*in.Content))}, nil
}

// parseInput parses a call's input. wrong is a sentence for the model.
func parseInput(raw json.RawMessage) (in input, wrong string) {
	if len(raw) > maxInput {
		return in, "The file is too large: it has at most 2 MiB."
	}
	if wrong := tool.Decode(raw, &in); wrong != "" {
		return in, wrong
	}
	switch {
	case in.Path == "":
		return in, `"path" is required: where to write, such as reports/march.md.`
	case in.Content == nil:
		return in, `"content" is required: what the file shall hold.`
	case len(*in.Content) > maxContent:
		return in, "The file is too large: it has at most 2 MiB."
	}
	return in, ""
}
