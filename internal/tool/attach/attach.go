// Package attach contains the tool attach_file, with which an agent sends a file to the user. It
// never trusts the model's input: the store validates names and contents of files.
package attach

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/text/render"
	"github.com/parley-server/parley/internal/tool"
)

const (
	maxContent = 1 << 20 // bytes of a file
	maxInput   = 2 << 20 // bytes of a call's input
	maxShown   = 60      // characters of a filename in a summary
)

// Files stores attachments. A second call for the same tool call returns the stored file; a file
// that cannot be stored is a fault.
type Files interface {
	Produce(ctx context.Context, workspace, session, turn uuid.UUID, call, filename, mime string, r io.Reader) (event.File, error)
}

// Folder holds the session's files. A file that cannot be read is a tool.Refusal.
type Folder interface {
	Open(ctx context.Context, path string) (io.ReadCloser, error)
}

// Tool returns the tool over files. folder may be nil: then the tool only attaches files with
// content that the model writes.
func Tool(files Files, folder Folder) tool.Tool { return attach{files, folder} }

type attach struct {
	files  Files
	folder Folder
}

type input struct {
	Path     string `json:"path,omitempty" jsonschema:"file of the folder, such as out/report.csv; instead of content"`
	Filename string `json:"filename,omitempty" jsonschema:"name with its extension, such as report.csv; not needed with a path"`
	Content  string `json:"content,omitempty" jsonschema:"whole content, at most 1 MiB"`
	Encoding string `json:"encoding,omitempty" jsonschema:"encoding of content; default: text"`
	MIME     string `json:"mime,omitempty" jsonschema:"media type, such as text/csv; default: detected"`
}

var inputSchema = tool.SchemaOf[input](tool.OneOf("encoding", "text", "base64"))

// Spec implements tool.Tool.
func (attach) Spec() tool.Spec {
	return tool.Spec{
		Name: "attach_file",
		Description: "Give the user a file to download: one of this session's folder, by its path, or one whose content you write here. " +
			"It is listed at the end of the answer; do not write links yourself. Programs and scripts that a system would run are refused.",
		Schema:     inputSchema,
		Idempotent: true,
	}
}

// Summary implements tool.Summarizer.
func (attach) Summary(raw json.RawMessage) string {
	in, content, wrong := parseInput(raw)
	if wrong != "" {
		return "attach a file"
	}
	if in.Path != "" {
		return "attach " + shown(in.Filename)
	}
	return fmt.Sprintf("attach %s (%s)", shown(in.Filename), describeSize(len(content)))
}

// Call implements tool.Tool.
func (t attach) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	in, content, wrong := parseInput(call.Input)
	if wrong != "" {
		return tool.Reject(wrong), nil
	}
	var from io.Reader = bytes.NewReader(content)
	if in.Path != "" {
		if t.folder == nil {
			return tool.Reject("This session has no folder. Give the file's content."), nil
		}
		file, err := t.folder.Open(ctx, in.Path)
		if err != nil {
			return tool.Result{}, err
		}
		defer file.Close()
		from = file
	}
	f, err := t.files.Produce(ctx, call.Workspace, call.Session, call.Turn, call.ID, in.Filename, in.MIME, from)
	if refused := fault.From(err); refused != nil {
		return tool.Reject(refused.Message), nil
	}
	if err != nil {
		return tool.Result{}, fmt.Errorf("attach file: %w", err)
	}
	return tool.Result{OK: true, Output: fmt.Sprintf("Attached %s (%s, %s). The user finds it at the end of the answer.", f.Filename,
		f.MIME, describeSize(int(f.Size)))}, nil
}

// parseInput parses a call's input. wrong is a sentence for the model.
func parseInput(raw json.RawMessage) (in input, content []byte, wrong string) {
	if len(raw) > maxInput {
		return in, nil, "The file is too large: it has at most 1 MiB."
	}
	if wrong := tool.Decode(raw, &in); wrong != "" {
		return in, nil, wrong
	}
	switch {
	case in.Path != "" && (in.Content != "" || in.Encoding != ""):
		return in, nil, `Give "path" or "content", not both.`
	case in.Path != "" && in.Filename == "":
		in.Filename = path.Base(in.Path)
	case strings.TrimSpace(in.Filename) == "":
		return in, nil, `"filename" is required: what the file is called, such as report.csv.`
	}
	switch in.Encoding {
	case "", "text":
		content = []byte(in.Content)
	case "base64":
		var err error
		if content, err = base64.StdEncoding.DecodeString(in.Content); err != nil {
			return in, nil, `"content" is not base64. Write it in the standard alphabet with padding, or as text.`
		}
	default:
		return in, nil, `"encoding" is text or base64.`
	}
	if len(content) > maxContent {
		return in, nil, "The file is too large: it has at most 1 MiB."
	}
	return in, content, ""
}

// shown shortens a filename for a summary: as it will be stored, as far as that is known here.
func shown(name string) string {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	return render.Argument(name, maxShown)
}

// describeSize formats a number of bytes for users.
func describeSize(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case float64(n)/(1<<10) < 1023.95: // 1024.0 KiB otherwise
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
