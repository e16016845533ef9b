package knowledge

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/text/render"
	"github.com/parley-server/parley/internal/tool"
)

const (
	grepLines   = 100  // lines that one call returns
	maxPattern  = 1000 // bytes
	shownBefore = 100  // characters of a long line shown before the match
	shownLine   = 300  // characters of a line that are shown
)

// grep finds lines in all documents.
type grep struct{ k Knowledge }

type grepInput struct {
	Pattern string `json:"pattern" jsonschema:"regular expression"`
	Path    string `json:"path,omitempty" jsonschema:"only files whose path begins with this, such as wiki/"`
}

var grepSchema = tool.SchemaOf[grepInput]()

func (grep) Spec() tool.Spec {
	return tool.Spec{
		Name: "grep",
		Description: "Find the lines that match a regular expression (RE2; begin with (?i) to ignore case) in the workspace's wiki and " +
			"files. Prints path:line: text.",
		Schema:     grepSchema,
		Idempotent: true,
	}
}

func (grep) Summary(input json.RawMessage) string {
	var in grepInput
	switch {
	case parseInput(input, &in) != "" || in.Pattern == "":
		return "search the knowledge"
	case in.Path != "":
		return "search " + render.Argument(in.Path, maxSummary) + " for " + render.Argument(in.Pattern, maxSummary)
	}
	return "search for " + render.Argument(in.Pattern, maxSummary)
}

func (t grep) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	var in grepInput
	if wrong := parseInput(call.Input, &in); wrong != "" {
		return tool.Reject(wrong), nil
	}
	switch {
	case in.Pattern == "":
		return tool.Reject(`"pattern" is required: a regular expression.`), nil
	case len(in.Pattern) > maxPattern:
		return tool.Reject(fmt.Sprintf("A pattern has at most %d bytes.", maxPattern)), nil
	}
	pattern, err := regexp.Compile(in.Pattern)
	if err != nil {
		return tool.Reject(fmt.Sprintf("The pattern is no regular expression in RE2's syntax: %v.", err)), nil
	}
	var out strings.Builder
	var refs []event.Reference
	more, err := t.k.Grep(ctx, call.Workspace, pattern, in.Path, grepLines, func(path string, line int, text string) {
		fmt.Fprintf(&out, "%s:%d: %s\n", path, line, window(text, pattern))
		if ref := (event.Reference{Path: path, Source: "grep"}); len(refs) == 0 || refs[len(refs)-1] != ref {
			refs = append(refs, ref)
		}
	})
	if err != nil {
		return tool.Result{}, fmt.Errorf("grep documents: %w", err)
	}
	switch {
	case len(refs) == 0:
		out.WriteString("No line matches.")
	case more:
		out.WriteString("[More lines match. Narrow the pattern, or give a path.]")
	}
	return tool.Result{OK: true, Output: strings.TrimSuffix(out.String(), "\n"), References: refs}, nil
}

// window returns the part of a line around the first match.
func window(line string, pattern *regexp.Regexp) string {
	if utf8.RuneCountInString(line) <= shownLine {
		return line
	}
	at := pattern.FindStringIndex(line)
	if at == nil {
		return text.Truncate(line, shownLine)
	}
	start := at[0]
	for n := 0; n < shownBefore && start > 0; n++ {
		_, size := utf8.DecodeLastRuneInString(line[:start])
		start -= size
	}
	shown := text.Truncate(line[start:], shownLine)
	if start > 0 {
		shown = "…" + shown
	}
	return shown
}
