package wiki_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

// manyDocuments is a workspace with more documents than an answer about an unknown one reads.
func manyDocuments(t *testing.T) (*wiki.Store, uuid.UUID) {
	t.Helper()
	pool := dbtest.New(t)
	ws := tenant(t, pool, "acme")
	for _, folder := range []string{"archive/", "wiki/", "zoo/"} {
		if _, err := pool.Exec(t.Context(), `INSERT INTO documents (workspace_id, path, title, content, indexed)
			SELECT $1, $2 || 'page-' || to_char(n, 'FM0000') || '.md', 'Page', 'text', 1 FROM generate_series(1, 900) n`, ws, folder); err != nil {
			t.Fatal(err)
		}
	}
	return wiki.New(pool), ws
}

// TestUnknownPathsHaveBoundedSuggestions reads a bounded number of paths, among them the meant one.
func TestUnknownPathsHaveBoundedSuggestions(t *testing.T) {
	t.Parallel()
	s, ws := manyDocuments(t)
	put(t, s, ws, "wiki/Team Handbook.md", "text")
	for unknown, want := range map[string]string{
		"wiki/page-0500.txt":       "wiki/page-0500.md", // in the order of paths
		"archive/page-01234.md":    "archive/page-0123.md",
		"page-0777.md":             "zoo/page-0777.md",  // part of a path
		"files/wiki/page-0640.md":  "wiki/page-0640.md", // a path is part of it
		"WIKI/team_handbook.md":    "wiki/Team Handbook.md",
		"\x00":                     "archive/page-0001.md",
		strings.Repeat("x", 1<<12): "wiki/page-0900.md",
	} {
		paths, err := s.Paths(t.Context(), ws, unknown)
		if err != nil || len(paths) > 600 || !slices.IsSorted(paths) || !slices.Contains(paths, want) {
			t.Errorf("%.40q: %d paths without %s, %v", unknown, len(paths), want, err)
		}
	}
	pages, err := s.Pages(t.Context(), ws, "team-handbook")
	if err != nil || len(pages) > 600 || !slices.Contains(pages, "Team Handbook") || slices.ContainsFunc(pages, func(p string) bool {
		return strings.Contains(p, "/")
	}) {
		t.Errorf("pages %q, %v", pages, err)
	}
	if _, err := s.Get(t.Context(), ws, "wiki/page-05000.md"); err == nil || !strings.HasSuffix(err.Error(),
		`Did you mean "wiki/page-0500.md"?`) {
		t.Errorf("a similar path: %v", err)
	}
}

// TestFoldersHavePages reads a folder in pages of each size: they contain every entry once, folders
// first, with the totals of the folder.
func TestFoldersHavePages(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws := wiki.New(pool), tenant(t, pool, "acme")
	for _, path := range []string{"b.txt", "B/1.txt", "a/x/1.txt", "a/x/2.txt", "a/3.txt", "a.txt", "ä/4.txt", "x/1.txt"} {
		put(t, s, ws, path, "12345")
	}
	put(t, s, tenant(t, pool, "theirs"), "c/1.txt", "other")
	for folder, want := range map[string][]string{
		"":   {"B/ 1 5", "a/ 3 15", "x/ 1 5", "ä/ 1 5", "a.txt 1 5", "b.txt 1 5"},
		"a/": {"x/ 2 10", "3.txt 1 5"},
		"c/": nil, "\x00": nil,
	} {
		for most := 1; most < 8; most++ {
			var got []string
			var after wiki.FolderEntry
			for page := (wiki.Folder{Documents: -1}); page.Documents != 0; {
				var err error
				if page, err = s.FolderPage(t.Context(), ws, folder, after, most); err != nil || len(page.Entries) > most {
					t.Fatalf("%d entries, %v", len(page.Entries), err)
				}
				for _, e := range page.Entries {
					got, after = append(got, fmt.Sprintf("%s%s %d %d", e.Name, map[bool]string{false: "/"}[e.Document], e.Documents, e.Size)), e
					if e.Document && (e.Title != e.Name || e.Version != 1) {
						t.Errorf("entry %+v", e)
					}
				}
				if all := map[string]int{"": 8, "a/": 3}[folder]; len(page.Entries) > 0 && (page.Documents != all || page.Size != int64(5*all)) {
					t.Errorf("%q has %d documents of %d bytes", folder, page.Documents, page.Size)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q in pages of %d: %s", folder, most, diff)
			}
		}
	}
}
