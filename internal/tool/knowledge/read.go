package knowledge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/text/render"
	"github.com/parley-server/parley/internal/tool"
)

// readLines is the default number of lines that a call returns.
const readLines = 500

// below is the model's path of the session's files.
const below = "/workspace"

// read returns lines of a document, or of one of the session's files.
type read struct {
	k      Knowledge
	folder Folder
}

type readInput struct {
	Path   string `json:"path" jsonschema:"path of the file"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line, from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"number of lines; default: 500"`
}

var readSchema = tool.SchemaOf[readInput](tool.AtLeast("offset", 1), tool.AtLeast("limit", 1))

func (t read) Spec() tool.Spec {
	description := "Read a file of the workspace's knowledge, or some lines of it. Paths are as grep shows them."
	if t.folder != nil {
		description += " The files of this session are below /workspace; a directory is listed, and a PDF is read as text."
	}
	return tool.Spec{
		Name:        "read",
		Description: description,
		Schema:      readSchema,
		Idempotent:  true,
	}
}

func (read) Summary(input json.RawMessage) string {
	var in readInput
	if parseInput(input, &in) != "" || in.Path == "" {
		return "read a file"
	}
	return "read " + render.Argument(in.Path, maxSummary)
}

func (t read) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	var in readInput
	if wrong := parseInput(call.Input, &in); wrong != "" {
		return tool.Reject(wrong), nil
	}
	if in.Path == "" {
		return tool.Reject(`"path" is required: the path of a file.`), nil
	}
	if in.Offset < 0 || in.Limit < 0 {
		return tool.Reject(`"offset" and "limit" count from 1.`), nil
	}
	if rest, ok := strings.CutPrefix(in.Path, below); ok && t.folder != nil && (rest == "" || rest[0] == '/') {
		content, err := t.folder.Text(ctx, strings.Trim(rest, "/"))
		if err != nil {
			return tool.Result{}, err
		}
		return in.show(content), nil
	}
	content, found, err := t.k.File(ctx, call.Workspace, in.Path)
	if err != nil {
		return tool.Result{}, fmt.Errorf("read document: %w", err)
	}
	if !found {
		paths, err := t.k.Paths(ctx, call.Workspace, in.Path)
		if err != nil {
			return tool.Result{}, fmt.Errorf("list documents: %w", err)
		}
		return unknownName("File", in.Path, search.Nearest(in.Path, paths, 5), paths), nil
	}
	res := in.show(content)
	if res.OK {
		res.References = []event.Reference{{Path: in.Path, Source: "read"}}
	}
	return res, nil
}

// show returns the requested lines as a result.
func (in readInput) show(content string) tool.Result {
	first := max(in.Offset, 1)
	limit := in.Limit
	if limit == 0 {
		limit = readLines
	}
	shown, count, broken := lines(content, first, limit)
	switch last := first + strings.Count(shown, "\n"); {
	case first > count:
		return tool.Reject(fmt.Sprintf("%q has %d lines; there is no line %d.", shortName(in.Path), count, first))
	case broken:
		shown += fmt.Sprintf("\n[line %d of %d is cut here, because it is too long]", last, count)
	case last < count || first > 1:
		shown += fmt.Sprintf("\n[lines %d to %d of %d]", first, last, count)
	}
	return tool.Result{OK: true, Output: shown}
}

// lines returns up to limit lines of content, without the last line's end, the number of all lines,
// and whether the last line is broken off.
func lines(content string, first, limit int) (shown string, count int, broken bool) {
	all := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	if first > len(all) {
		return "", len(all), false
	}
	asked := strings.Join(all[first-1:][:min(limit, len(all)-first+1)], "\n")
	shown = cutLines(asked, maxOutput)
	return strings.TrimSuffix(shown, "\n"), len(all), len(shown) < len(asked) && !strings.HasSuffix(shown, "\n")
}
