package wiki_test

import (
	"crypto/rand"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

// TestSearchFindsWhatAnotherReleaseWrote: releases before the sections write only the document, and
// a new language changes all sections.
func TestSearchFindsWhatAnotherReleaseWrote(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws := wiki.New(pool), tenant(t, pool, "acme")
	find := func(query string) string {
		t.Helper()
		hits, err := s.Search(t.Context(), ws, query, "", 10)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, h := range hits {
			found = append(found, h.Doc+": "+h.Passage())
		}
		return strings.Join(found, "\n")
	}
	for _, c := range []struct{ sql, query, want string }{
		{`INSERT INTO documents (workspace_id, path, title, content) VALUES ($1, 'a.md', '', 'Trains first.')`, "train", "a.md: Trains first."},
		{`UPDATE documents SET content = 'Planes last.', version = version + 1 WHERE workspace_id = $1`, "train", ""},
		{`UPDATE documents SET content = 'Die Züge fahren.', version = version + 1 WHERE workspace_id = $1`, "zug", ""},
		{`UPDATE workspaces SET search_language = 'german' WHERE id = $1`, "zug", "a.md: Die Züge fahren."},
		{`DELETE FROM documents WHERE workspace_id = $1`, "zug", ""},
	} {
		if _, err := pool.Exec(t.Context(), c.sql, ws); err != nil {
			t.Fatal(err)
		}
		if got := find(c.query); got != c.want {
			t.Errorf("after %s, %q finds %q, want %q", c.sql, c.query, got, c.want)
		}
	}
}

// TestLongSectionsAreFound covers a document whose words do not fit into one tsvector.
func TestLongSectionsAreFound(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws := wiki.New(pool), tenant(t, pool, "acme")
	var b strings.Builder
	for b.Len() < wiki.MaxContent-100 {
		b.WriteString(rand.Text())
		b.WriteByte(' ')
	}
	b.WriteString("needle")
	put(t, s, ws, "long.txt", b.String())
	hits, err := s.Search(t.Context(), ws, "needle", "", 2)
	if err != nil || len(hits) != 1 || !strings.HasSuffix(hits[0].Passage(), " needle") {
		t.Fatalf("%d hits, %v", len(hits), err)
	}
	if n := len(hits[0].Snippet); n != 2 || !hits[0].Snippet[1].Match {
		t.Errorf("the snippet is %+v", hits[0].Snippet)
	}
}

// TestExcludedWordsExcludeDocuments checks that a word after a minus excludes each document that has
// it, also in another section than the other words.
func TestExcludedWordsExcludeDocuments(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws := wiki.New(pool), tenant(t, pool, "acme")
	put(t, s, ws, "gifts.md", "# Refunds\n\nA refund takes a week.\n\n# Cards\n\nA gift card has no refund.")
	put(t, s, ws, "orders.md", "# Orders\n\nAsk for a refund within a month.")
	for query, want := range map[string]string{
		"refund": "gifts orders", "refund -gift": "orders", `refund -gift-card`: "orders", "refund -week -month": "",
		`"refund takes"`: "gifts", `refund -the`: "gifts orders",
	} {
		hits, err := s.Search(t.Context(), ws, query, "", 9)
		if err != nil {
			t.Fatal(err)
		}
		got := docsIn(hits)
		slices.Sort(got)
		if docs := strings.Join(slices.Compact(got), " "); docs != want {
			t.Errorf("%s finds %q, want %q", query, docs, want)
		}
	}
}
