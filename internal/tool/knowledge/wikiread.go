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

// wikiRead returns a wiki page.
type wikiRead struct{ k Knowledge }

type wikiReadInput struct {
	Page    string `json:"page" jsonschema:"name of the page"`
	Version bool   `json:"version,omitempty" jsonschema:"return the page's version, which wiki_write needs, in the first line"`
}

var wikiReadSchema = tool.SchemaOf[wikiReadInput]()

func (wikiRead) Spec() tool.Spec {
	return tool.Spec{
		Name:        "wiki_read",
		Description: `Read a page of the workspace's wiki by its name, for example "onboarding".`,
		Schema:      wikiReadSchema,
		Idempotent:  true,
	}
}

func (wikiRead) Summary(input json.RawMessage) string {
	var in wikiReadInput
	if parseInput(input, &in) != "" || in.Page == "" {
		return "read a wiki page"
	}
	return "read wiki page " + render.Argument(in.Page, maxSummary)
}

func (t wikiRead) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	var in wikiReadInput
	if wrong := parseInput(call.Input, &in); wrong != "" {
		return tool.Reject(wrong), nil
	}
	page := pageName(in.Page)
	if page == "" {
		return tool.Reject(`"page" is required: the name of a wiki page.`), nil
	}
	content, version, err := t.k.Page(ctx, call.Workspace, page)
	if err != nil {
		return tool.Result{}, fmt.Errorf("read wiki page: %w", err)
	}
	if version > 0 {
		if in.Version {
			content = fmt.Sprintf("[version %d]\n%s", version, content)
		}
		return tool.Result{OK: true, Output: content, References: []event.Reference{{Path: page, Source: "wiki_read"}}}, nil
	}
	pages, err := t.k.Pages(ctx, call.Workspace, page)
	if err != nil {
		return tool.Result{}, fmt.Errorf("list wiki pages: %w", err)
	}
	return unknownName("Wiki page", in.Page, search.Nearest(in.Page, pages, 5), pages), nil
}

// pageName returns the name of the page: models often pass the path that grep returned.
func pageName(path string) string {
	return strings.TrimSuffix(strings.TrimPrefix(path, "wiki/"), ".md")
}
