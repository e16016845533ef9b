package wiki_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

func tenant(t *testing.T, pool *pgxpool.Pool, slug string) uuid.UUID {
	t.Helper()
	w, err := workspace.New(pool).Create(t.Context(), slug, "", "")
	if err != nil {
		t.Fatal(err)
	}
	return w.ID
}

func put(t *testing.T, s *wiki.Store, ws uuid.UUID, path, content string) wiki.Document {
	t.Helper()
	d, err := s.Put(t.Context(), ws, path, content)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDocumentLives(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws := wiki.New(pool), tenant(t, pool, "acme")
	key := wiki.PageKey("onboarding")

	d := put(t, s, ws, key, "# Welcome\n\nHello.")
	if d.Title != "Welcome" || d.Version != 1 {
		t.Errorf("first Put: title %q, version %d", d.Title, d.Version)
	}
	if d = put(t, s, ws, key, "Hello again."); d.Title != "onboarding.md" || d.Version != 2 {
		t.Errorf("second Put: title %q, version %d", d.Title, d.Version)
	}
	got, err := s.Get(t.Context(), ws, key)
	if err != nil || !cmp.Equal(got, d) {
		t.Errorf("Get after Put: %v, %s", err, cmp.Diff(d, got))
	}
	put(t, s, ws, "policies/travel.txt", "Trains first.")
	for prefix, want := range map[string][]string{
		"":        {"policies/travel.txt", key},
		"wiki/":   {key},
		"nothing": nil,
		"a\x00b":  nil,
	} {
		entries, err := s.List(t.Context(), ws, prefix)
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, e := range entries {
			paths = append(paths, e.Path)
		}
		if !slices.Equal(paths, want) {
			t.Errorf("List(%q) = %q, want %q", prefix, paths, want)
		}
	}
	if err := s.Delete(t.Context(), ws, key); err != nil {
		t.Fatal(err)
	}
	if f := fault.From(s.Delete(t.Context(), ws, key)); f == nil || f.Code != fault.FileNotFound {
		t.Errorf("second Delete: %v", f)
	}
	if _, version, err := s.Page(t.Context(), ws, "onboarding"); version != 0 || err != nil {
		t.Errorf("Page after Delete: %d, %v", version, err)
	}
}

func TestGetSuggestsWhatWasMeant(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws := wiki.New(pool), tenant(t, pool, "acme")
	put(t, s, ws, wiki.PageKey("onboarding"), "Hello.")
	_, err := s.Get(t.Context(), ws, wiki.PageKey("on-bording"))
	f := fault.From(err)
	if f == nil || f.Code != fault.FileNotFound || !strings.Contains(f.Message, `"wiki/onboarding.md"`) {
		t.Errorf("Get of a misspelt page: %v", err)
	}
}

func TestDocumentsThatCannotBe(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws := wiki.New(pool), tenant(t, pool, "acme")
	for name, path := range badPaths {
		_, err := s.Put(t.Context(), ws, path, "content")
		if f := fault.From(err); f == nil || f.Code != fault.InvalidRequestBody || len(f.Detail.Violations) != 1 || f.Param != "path" {
			t.Errorf("Put with %s: %v", name, err)
		}
		_, err = s.Get(t.Context(), ws, path)
		if f := fault.From(err); f == nil || f.Code != fault.FileNotFound {
			t.Errorf("Get with %s: %v", name, err)
		}
		if f := fault.From(s.Delete(t.Context(), ws, path)); f == nil || f.Code != fault.FileNotFound {
			t.Errorf("Delete with %s: %v", name, f)
		}
	}
	for name, content := range map[string]string{"NUL": "a\x00b", "broken UTF-8": "a\xffb", "too long": strings.Repeat("x",
		wiki.MaxContent+1)} {
		if _, err := s.Put(t.Context(), ws, "a.txt", content); fault.From(err) == nil {
			t.Errorf("Put of %s: %v", name, err)
		}
	}
	_, err := s.Put(t.Context(), ws, "/a", "b\x00")
	if f := fault.From(err); f == nil || len(f.Detail.Violations) != 2 {
		t.Errorf("not all violations at once: %v", err)
	}
	put(t, s, ws, strings.Repeat("x", wiki.MaxPath), strings.Repeat("x", wiki.MaxContent))
}

func TestSearchSeesEveryCommittedChange(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	here, elsewhere := wiki.New(pool), wiki.New(pool) // two processes
	ws := tenant(t, pool, "acme")
	search := func(query string) (paths []string) {
		t.Helper()
		hits, err := here.Search(t.Context(), ws, query, "", 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hits {
			paths = append(paths, h.Doc)
		}
		return paths
	}
	if got := search("badge"); got != nil {
		t.Errorf("found %q in an empty index", got)
	}
	put(t, elsewhere, ws, "a.md", "Your badge opens the door.")
	if got := search("badges"); !slices.Equal(got, []string{"a.md"}) {
		t.Errorf("after the first Put: %q", got)
	}
	put(t, elsewhere, ws, "a.md", "Your phone opens the door.")
	if got := search("badge"); got != nil {
		t.Errorf("found %q, which was overwritten", got)
	}
	if err := elsewhere.Delete(t.Context(), ws, "a.md"); err != nil {
		t.Fatal(err)
	}
	put(t, elsewhere, ws, "b.md", "Your badge opens the door.")
	if got := search("badge"); !slices.Equal(got, []string{"b.md"}) {
		t.Errorf("after one document replaced another: %q", got)
	}
}

func TestKnowledgeStaysInItsWorkspace(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := wiki.New(pool)
	ours, theirs := tenant(t, pool, "ours"), tenant(t, pool, "theirs")
	put(t, s, theirs, "secret.md", "The launch is on Monday.")
	if hits, err := s.Search(t.Context(), ours, "launch", "", 5); err != nil || len(hits) > 0 {
		t.Errorf("Search: %v, %v", hits, err)
	}
	if lines, _ := grep(t, s, ours, "launch", "", 5); len(lines) > 0 {
		t.Errorf("Grep: %q", lines)
	}
	_, err := s.Get(t.Context(), ours, "secret.md")
	_, unknown := s.Get(t.Context(), ours, "nothing.md")
	if err == nil || err.Error() != unknown.Error() {
		t.Errorf("Get of another workspace's document: %v; of an unknown one: %v", err, unknown)
	}
	if paths, err := s.Paths(t.Context(), ours, "secret.md"); err != nil || len(paths) > 0 {
		t.Errorf("Paths: %q, %v", paths, err)
	}
}

func grep(t *testing.T, s *wiki.Store, ws uuid.UUID, pattern, prefix string, limit int) (lines []string, more bool) {
	t.Helper()
	more, err := s.Grep(t.Context(), ws, regexp.MustCompile(pattern), prefix, limit, func(path string, line int, text string) {
		lines = append(lines, path+"|"+text+"|"+strings.Repeat("i", line))
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines, more
}

func TestGrepFindsLinesInOrder(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws := wiki.New(pool), tenant(t, pool, "acme")
	put(t, s, ws, "b.txt", "one door\r\ntwo\nthree doors")
	put(t, s, ws, "B.txt", "door")
	put(t, s, ws, "a/c.txt", "no\ndoor\n")
	all := []string{"B.txt|door|i", "a/c.txt|door|ii", "b.txt|one door|i", "b.txt|three doors|iii"}
	for _, c := range []struct {
		pattern, prefix string
		limit           int
		want            []string
		more            bool
	}{
		{"door", "", 10, all, false},
		{"door", "", 4, all, false},
		{"door", "", 3, all[:3], true},
		{"doors$", "", 10, all[3:], false},
		{"door", "a/", 10, all[1:2], false},
		{"door", "", 0, nil, true},
		{"window", "", 10, nil, false},
	} {
		got, more := grep(t, s, ws, c.pattern, c.prefix, c.limit)
		if !slices.Equal(got, c.want) || more != c.more {
			t.Errorf("Grep(%q, %q, %d) = %q, %t; want %q, %t", c.pattern, c.prefix, c.limit, got, more, c.want, c.more)
		}
	}
}

func TestGrepStopsWhenNobodyWaits(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws := wiki.New(pool), tenant(t, pool, "acme")
	put(t, s, ws, "a.txt", "door")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Grep(ctx, ws, regexp.MustCompile("door"), "", 10, func(string, int, string) {}); err == nil {
		t.Error("Grep continued after its context had ended")
	}
}
