package knowledge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/text/render"
	"github.com/parley-server/parley/internal/tool"
)

const (
	searchHits   = 10   // passages that one call returns
	maxQuery     = 1000 // bytes
	shownPassage = 600  // characters of a passage
)

// find ranks the passages of all documents.
type find struct{ k Knowledge }

type findInput struct {
	Query string `json:"query" jsonschema:"words or a question; a \"quoted phrase\" must occur and a -word must not"`
	Path  string `json:"path,omitempty" jsonschema:"only files whose path begins with this, such as wiki/"`
}

var findSchema = tool.SchemaOf[findInput]()

func (find) Spec() tool.Spec {
	return tool.Spec{
		Name: "search",
		Description: "Find the passages of the workspace's wiki and files that answer a question, best first. Prints path:line: " +
			"heading | text. " +
			"Use it before grep, which finds exact text.",
		Schema:     findSchema,
		Idempotent: true,
	}
}

func (find) Summary(input json.RawMessage) string {
	var in findInput
	switch {
	case parseInput(input, &in) != "" || in.Query == "":
		return "search the knowledge"
	case in.Path != "":
		return "search " + render.Argument(in.Path, maxSummary) + " for " + render.Argument(in.Query, maxSummary)
	}
	return "search for " + render.Argument(in.Query, maxSummary)
}

func (t find) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	var in findInput
	if wrong := parseInput(call.Input, &in); wrong != "" {
		return tool.Reject(wrong), nil
	}
	switch {
	case strings.TrimSpace(in.Query) == "":
		return tool.Reject(`"query" is required: words or a question.`), nil
	case len(in.Query) > maxQuery:
		return tool.Reject(fmt.Sprintf("A query has at most %d bytes.", maxQuery)), nil
	}
	hits, err := t.k.Search(ctx, call.Workspace, in.Query, in.Path, searchHits)
	if err != nil {
		return tool.Result{}, fmt.Errorf("search documents: %w", err)
	}
	if len(hits) == 0 {
		return tool.Result{OK: true, Output: "Nothing was found. Try other words, or grep."}, nil
	}
	var out strings.Builder
	var refs []event.Reference
	for _, h := range hits {
		fmt.Fprintf(&out, "%s:%d: %s | %s\n", h.Doc, h.Line, cmp.Or(h.Heading, h.Title), text.Truncate(h.Passage(), shownPassage))
		if ref := (event.Reference{Path: h.Doc, Source: "search"}); !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	return tool.Result{OK: true, Output: strings.TrimSuffix(out.String(), "\n"), References: refs}, nil
}
