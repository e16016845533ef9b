package docsite_test

import (
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/docs"
	"github.com/parley-server/parley/internal/web/docsite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func library(t *testing.T) *docsite.Library {
	t.Helper()
	l, err := docsite.NewLibrary(docs.Files, "/docs")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestEveryPageIsListed checks that each file is a page of a group, with what a list shows of it.
func TestEveryPageIsListed(t *testing.T) {
	t.Parallel()
	l, files := library(t), 0
	listed := make(map[string]bool)
	for _, p := range l.All() {
		listed[p.File] = true
		if p.Title == "" || p.Summary == "" || p.HTML == "" || p != l.Index && p.Group == "" {
			t.Errorf("%s: title %q, summary %q, group %q", p.File, p.Title, p.Summary, p.Group)
		}
		if strings.ContainsAny(p.Summary, "`*[]|\n") {
			t.Errorf("%s: the summary has markup: %q", p.File, p.Summary)
		}
	}
	_ = fs.WalkDir(docs.Files, ".", func(file string, d fs.DirEntry, _ error) error {
		if path.Ext(file) == ".md" {
			if files++; !listed[file] {
				t.Errorf("%s is not listed", file)
			}
		}
		return nil
	})
	if files != len(l.All()) || len(l.Groups) < 4 {
		t.Errorf("%d files, %d pages, %d groups", files, len(l.All()), len(l.Groups))
	}
}

func TestMarkdownIsRendered(t *testing.T) {
	t.Parallel()
	l, err := docsite.NewLibrary(fstest.MapFS{
		"README.md": {Data: []byte("# Index\n\n## Guides\n\n| page | content |\n|---|---|\n| [One](guides/one.md) | the *first* page |\n")},
		"guides/one.md": {Data: []byte(
			"# One\n\nText with `code` & <b>markup</b>. See [two](two.md#a-part) and [code](../../internal/x.go).\n\n" +
				"## A part: `x_y`, twice\n\n| a | b |\n|--:|:--|\n| 1 | <script>alert(1)</script> |\n\n## A part: `x_y`, " +
				"twice\n\n```json\n{\"a\": \"<b>\"}\n```\n")},
		"guides/two.md": {
			Data: []byte("# Two\n\n## A part\n\n[back](one.md), [up](../README.md), [out](https://example.com/), [evil](javascript:alert(1))\n")},
	}, "/docs")
	if err != nil {
		t.Fatal(err)
	}
	one, two := l.Page("guides/one"), l.Page("guides/two")
	if one.Summary != "the first page" || one.Group != "Guides" || one.Title != "One" {
		t.Errorf("summary %q, group %q, title %q", one.Summary, one.Group, one.Title)
	}
	want := []string{"a-part-x_y-twice", "a-part-x_y-twice-1"}
	var got []string
	for _, h := range one.Headings {
		got = append(got, h.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ids: %s", diff)
	}
	for _, text := range []string{
		`href="/docs/guides/two#a-part"`, `href="https://github.com/parley-server/parley/blob/main/internal/x.go"`,
		`<code>code</code> &amp; `, `<td align="right">1</td>`, `id="a-part-x_y-twice"`, `<span class="t-n">&#34;a&#34;</span>`,
	} {
		if !strings.Contains(string(one.HTML), text) {
			t.Errorf("no %s in\n%s", text, one.HTML)
		}
	}
	for _, text := range []string{`href="/docs/guides/one"`, `href="/docs"`, `href="https://example.com/"`} {
		if !strings.Contains(string(two.HTML), text) {
			t.Errorf("no %s in\n%s", text, two.HTML)
		}
	}
	for _, text := range []string{"<script", "<b>", "style=", "javascript:", "<h1"} {
		if strings.Contains(string(one.HTML)+string(two.HTML), text) {
			t.Errorf("%s is in\n%s%s", text, one.HTML, two.HTML)
		}
	}
	if !strings.Contains(string(one.Markdown), "(two.md#a-part)") || !strings.Contains(string(one.Markdown),
		"(https://github.com/parley-server/parley/blob/main/internal/x.go)") {
		t.Errorf("Markdown:\n%s", one.Markdown)
	}
}

// TestSearchFindsTitles searches for the title of every page.
func TestSearchFindsTitles(t *testing.T) {
	t.Parallel()
	l := library(t)
	for _, p := range l.All()[1:] {
		found := false
		results := l.Find(p.Title, 5)
		for _, r := range results {
			found = found || strings.Split(r.Path, "#")[0] == p.Path
		}
		if !found {
			t.Errorf("%q does not find %s: %v", p.Title, p.Path, results)
		}
	}
	for query, want := range map[string]string{
		"resume a stream after a reload": "/docs/guides/reload",
		"rotate a key":                   "/docs/guides/secrets",
		"erase a session":                "/docs/guides/retention",
		"bubblewrap":                     "/docs/guides/sandbox",
	} {
		results := l.Find(query, 3)
		found, marked := false, false
		for _, r := range results {
			found = found || strings.HasPrefix(r.Path, want)
			for _, piece := range r.Snippet {
				marked = marked || piece.Match
			}
		}
		if !found || !marked {
			t.Errorf("%q finds %+v, not %s", query, results, want)
		}
	}
	if results := l.Find("zzyzx", 5); len(results) > 0 {
		t.Errorf("found %v", results)
	}
}

func TestPagesAreFoundByTheirNames(t *testing.T) {
	t.Parallel()
	l := library(t)
	for name, want := range map[string]string{
		"": "/docs", "guides/files": "/docs/guides/files", "files": "/docs/guides/files", "Files.md": "/docs/guides/files",
		"/reference/cli/": "/docs/reference/cli", "python": "/docs/guides/clients/python", "clients": "/docs/guides/clients",
	} {
		if p, _ := l.Lookup(name); p == nil || p.Path != want {
			t.Errorf("Lookup(%q) = %+v, want %s", name, p, want)
		}
	}
	for _, name := range []string{"streeming", "guides/streaming", "old/folder/streaming.md"} {
		if p, near := l.Lookup(name); p != nil || len(near) == 0 || near[0].Topic != "reference/streaming" {
			t.Errorf("Lookup(%q) = %v, %v", name, p, near)
		}
	}
}

func TestLLMsListsEveryPage(t *testing.T) {
	t.Parallel()
	l := library(t)
	list, full := l.LLMs("https://parley.example"), l.LLMsFull("https://parley.example")
	for _, p := range l.All()[1:] {
		line := "- [" + p.Title + "](https://parley.example/docs/" + p.File + "): " + p.Summary + "\n"
		if strings.Count(list, line) != 1 || !strings.Contains(list, "\n## "+p.Group+"\n") {
			t.Errorf("llms.txt does not have the line %q of the group %s", line, p.Group)
		}
		if !strings.Contains(full, strings.TrimSpace(string(p.Markdown))) {
			t.Errorf("llms-full.txt does not have the text of %s", p.File)
		}
	}
}
