package knowledge

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/text/render"
	"github.com/parley-server/parley/internal/tool"
)

// wikiWrite creates a wiki page, or replaces the version of it that the model has read.
type wikiWrite struct{ k Knowledge }

type wikiWriteInput struct {
	Page     string  `json:"page" jsonschema:"name of the page, such as handbook/travel"`
	Content  *string `json:"content" jsonschema:"whole page, in Markdown"`
	Expected int     `json:"expected_version,omitempty" jsonschema:"version that this replaces; absent for a new page"`
}

var wikiWriteSchema = tool.SchemaOf[wikiWriteInput](tool.AtLeast("expected_version", 1))

func (wikiWrite) Spec() tool.Spec {
	return tool.Spec{
		Name: "wiki_write",
		Description: `Write a page of the workspace's wiki, for all its users. To change a page, read it with wiki_read and ` +
			`"version":true first, ` +
			`then write the whole page and give that version as expected_version.`,
		Schema: wikiWriteSchema,
		// When the same call runs again, it finds its own page and changes nothing.
		Idempotent: true,
	}
}

func (wikiWrite) Summary(input json.RawMessage) string {
	var in wikiWriteInput
	if parseUpTo(maxWritten, input, &in) != "" || in.Page == "" || in.Content == nil {
		return "write a wiki page"
	}
	return fmt.Sprintf("write wiki page %s (%s)", render.Argument(pageName(in.Page), maxSummary), describeSize(len(*in.Content)))
}

func (t wikiWrite) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	var in wikiWriteInput
	if wrong := parseUpTo(maxWritten, call.Input, &in); wrong != "" {
		return tool.Reject(wrong), nil
	}
	page := pageName(in.Page)
	switch {
	case page == "":
		return tool.Reject(`"page" is required: the name of a wiki page.`), nil
	case in.Content == nil:
		return tool.Reject(`"content" is required: the whole page.`), nil
	case in.Expected < 0:
		return tool.Reject(`"expected_version" counts from 1; leave it out for a new page.`), nil
	}
	version, ok, err := t.k.WritePage(ctx, call.Workspace, page, *in.Content, in.Expected)
	if f := fault.From(err); f != nil {
		return tool.Reject(f.Message), nil
	}
	if err != nil {
		return tool.Result{}, fmt.Errorf("write wiki page: %w", err)
	}
	switch {
	case ok:
		return tool.Result{OK: true, Output: fmt.Sprintf("The wiki page %q is written; it is at version %d.", shortName(page), version)}, nil
	case version == 0:
		return tool.Reject(fmt.Sprintf("Wiki page %q does not exist. Leave expected_version out to make it.", shortName(page))), nil
	case in.Expected == 0:
		return tool.Reject(
			fmt.Sprintf("There is a wiki page %q, at version %d. To replace it, read it, then write with expected_version %d.",
				shortName(page), version, version)), nil
	}
	return tool.Reject(fmt.Sprintf("The wiki page %q is at version %d, not %d. Read it again, then write with expected_version %d.",
		shortName(page), version, in.Expected, version)), nil
}

// describeSize formats a number of bytes for users.
func describeSize(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
