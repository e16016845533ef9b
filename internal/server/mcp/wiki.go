package mcp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/mcp/tools"
	"github.com/parley-server/parley/internal/store/wiki"
)

// wikiRead reads a wiki page, or another document by its path.
func (s *api) wikiRead(ctx context.Context, c *tools.Call) (tools.Result, error) {
	name := c.Args.RequiredString("page", wiki.MaxPath)
	if err := c.Args.Err(); err != nil {
		return tools.Result{}, err
	}
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	d, err := s.wiki.Get(ctx, c.Caller.Workspace.ID, wiki.PageKey(wiki.PageName(name)))
	if f := fault.From(err); f != nil && f.Code == fault.FileNotFound {
		if other, none := s.wiki.Get(ctx, c.Caller.Workspace.ID, name); none == nil {
			d, err = other, nil
		}
	}
	if err != nil {
		return tools.Result{}, err
	}
	value := map[string]any{"path": d.Path, "title": d.Title, "version": d.Version, "content": d.Content,
		"updated_at": d.UpdatedAt.UTC().Format(time.RFC3339Nano)}
	if page, ok := wiki.PageOf(d.Path); ok {
		value["page"] = page
	}
	return tools.Result{Texts: []string{d.Content}, Value: value}, nil
}

// hit is a passage found by a search.
type hit struct {
	Path    string `json:"path"`
	Page    string `json:"page,omitempty"` // for a wiki page: the name for wiki_read
	Title   string `json:"title"`
	Heading string `json:"heading,omitempty"`
	Line    int    `json:"line"`
	Text    string `json:"text"`
}

func (s *api) wikiSearch(ctx context.Context, c *tools.Call) (tools.Result, error) {
	query, limit := c.Args.RequiredString("query", 1000), c.Args.Int("limit", 10, 1, tools.MaxPage)
	if err := c.Args.Err(); err != nil {
		return tools.Result{}, err
	}
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	found, err := s.wiki.Search(ctx, c.Caller.Workspace.ID, query, "", limit)
	if err != nil {
		return tools.Result{}, err
	}
	hits := make([]hit, len(found))
	var text strings.Builder
	for i, f := range found {
		hits[i] = hit{Path: f.Doc, Title: f.Title, Heading: f.Heading, Line: f.Line, Text: f.Text}
		hits[i].Page, _ = wiki.PageOf(f.Doc)
		fmt.Fprintf(&text, "## %s:%d %s\n%s\n\n", f.Doc, f.Line, f.Heading, f.Text)
	}
	if len(hits) == 0 {
		text.WriteString("Nothing was found.")
	}
	return tools.Result{Texts: []string{strings.TrimSpace(text.String())}, Value: map[string]any{"hits": hits}}, nil
}

func (s *api) saveWiki(ctx context.Context, c *tools.Call) (tools.Result, error) {
	page := wiki.PageName(c.Args.RequiredString("page", wiki.MaxPath))
	content := c.Args.RequiredText("content")
	expected := c.Args.Int("expected_version", 0, 1, 1<<31-1)
	if err := c.Args.Err(); err != nil {
		return tools.Result{}, err
	}
	ctx, cancel := s.Brief(ctx)
	defer cancel()
	version, ok, err := s.wiki.WritePage(ctx, c.Caller.Workspace.ID, page, content, expected)
	if f := fault.From(err); f != nil {
		for i, v := range f.Detail.Violations {
			if v.Param == "/path" { // the parameter has another name here
				f.Detail.Violations[i].Param = "/page"
			}
		}
	}
	if err != nil {
		return tools.Result{}, err
	}
	if !ok {
		return tools.Result{}, staleError(page, version, expected)
	}
	return tools.Result{Value: map[string]any{"page": page, "version": version}}, nil
}

// staleError returns the error for a writer that has not read the current version.
func staleError(page string, version, expected int) error {
	v := fault.Violation{Param: "/expected_version", Rule: "version"}
	switch {
	case version == 0:
		v.Message = fmt.Sprintf("Wiki page %q does not exist. Leave expected_version out to make it.", page)
	case expected == 0:
		v.Message = fmt.Sprintf(
			"There is a wiki page %q, at version %d. To replace it, read it with wiki_read, then write with expected_version %d.", page,
			version, version)
		v.Expected = version
	default:
		v.Message = fmt.Sprintf("The wiki page %q is at version %d, not %d. Read it again, then write with expected_version %d.", page,
			version, expected, version)
		v.Expected = version
	}
	return fault.Invalid(v)
}
