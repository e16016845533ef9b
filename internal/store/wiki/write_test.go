package wiki_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestNobodyWritesOverWhatTheyHaveNotRead(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws, other := wiki.New(pool), tenant(t, pool, "acme"), tenant(t, pool, "other")
	for i, c := range []struct {
		content           string
		expected, version int
		ok                bool
	}{
		{"one", 1, 0, false}, // a version to replace that does not exist
		{"one", 0, 1, true},
		{"one", 0, 1, true}, // the same content again
		{"two", 0, 1, false},
		{"two", 1, 2, true},
		{"two", 1, 2, true}, // a second time
		{"three", 1, 2, false},
		{"three", 1 << 40, 2, false},
		{"three", 2, 3, true},
		{"one", 1, 3, false},
	} {
		version, ok, err := s.WritePage(t.Context(), ws, "page", c.content, c.expected)
		if err != nil || version != c.version || ok != c.ok {
			t.Errorf("write %d: version %d, %t, %v", i, version, ok, err)
		}
	}
	if content, version, err := s.Page(t.Context(), ws, "page"); content != "three" || version != 3 || err != nil {
		t.Errorf("the page is %q, version %d, %v", content, version, err)
	}
	if _, version, _ := s.Page(t.Context(), other, "page"); version != 0 {
		t.Error("another workspace also has the page")
	}
	if d, err := s.Get(t.Context(), ws, wiki.PageKey("page")); err != nil || d.Title != "page.md" {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestNoTwoNamesLookLikeOne: a page has one name, however it is spelled, and no name has blanks
// around it.
func TestNoTwoNamesLookLikeOne(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, w := wiki.New(pool), tenant(t, pool, "acme")
	if _, ok, err := s.WritePage(t.Context(), w, "expenses", "one", 0); err != nil || !ok {
		t.Fatal(ok, err)
	}
	for _, name := range []string{"expenses.md", "wiki/expenses", "wiki/expenses.md"} {
		if _, _, err := s.WritePage(t.Context(), w, name, "two", 0); fault.From(err) == nil {
			t.Errorf("%s: %v", name, err)
		}
		if version, ok, err := s.WritePage(t.Context(), w, wiki.PageName(name), "two", 0); err != nil || ok || version != 1 {
			t.Errorf("%s: version %d, %t, %v", name, version, ok, err)
		}
	}
	for _, path := range []string{"wiki/expenses.md.md", "wiki/wiki/expenses.md", "wiki/ expenses.md", "wiki/expenses .md",
		"wiki/team /x.md", " a.txt", "a.txt ", "a/\u00a0b"} {
		if _, err := s.Put(t.Context(), w, path, "x"); fault.From(err) == nil {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestOneOfTheWritersOfAVersionWins(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws := wiki.New(pool), tenant(t, pool, "acme")
	for expected := range 3 {
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				_, ok, err := s.WritePage(t.Context(), ws, "page", fmt.Sprintf("%d by %d", expected, i), expected)
				if err != nil {
					t.Error(err)
				}
				if ok {
					won.Add(1)
				}
			})
		}
		wait.Until(t, "all goroutines", wg.Wait)
		if won.Load() != 1 {
			t.Errorf("version %d has %d writers", expected+1, won.Load())
		}
	}
}

func TestDocumentsOfAWorkspaceAreBounded(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, many, big := wiki.New(pool), tenant(t, pool, "many"), tenant(t, pool, "big")
	put(t, s, many, "wiki/1.md", "x")
	put(t, s, big, "wiki/1.md", strings.Repeat("é", wiki.MaxContent/2))
	for ws, sql := range map[uuid.UUID]string{
		many: `UPDATE workspace_storage SET document_count = $2::bigint + 0 * $3::bigint WHERE workspace_id = $1`,
		big:  `UPDATE workspace_storage SET documents = $3::bigint + 0 * $2::bigint WHERE workspace_id = $1`,
	} {
		if _, err := pool.Exec(t.Context(), sql, ws, wiki.MaxDocuments, wiki.MaxTotal); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(t.Context(), many, "wiki/1.md", "changed"); err != nil {
		t.Errorf("a change of one of the last documents: %v", err)
	}
	if _, ok, err := s.WritePage(t.Context(), big, "1", strings.Repeat("x", wiki.MaxContent), 1); err != nil || !ok {
		t.Errorf("a change of the same length: %t, %v", ok, err)
	}
	_, errPut := s.Put(t.Context(), many, "one-more.txt", "")
	_, _, errWrite := s.WritePage(t.Context(), many, "one-more", "x", 0)
	_, errBig := s.Put(t.Context(), big, "one-more.txt", "x")
	for rule, errs := range map[string][]error{"max_items": {errPut, errWrite}, "max_total": {errBig}} {
		for _, err := range errs {
			if f := fault.From(err); f == nil || f.Code != fault.InvalidRequestBody || f.Detail.Violations[0].Rule != rule {
				t.Errorf("one more: %v", err)
			}
		}
	}
	if _, err := s.Put(t.Context(), tenant(t, pool, "third"), "a.txt", "x"); err != nil {
		t.Errorf("another workspace: %v", err)
	}
}

func TestStorageQuotaBoundsDocuments(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws := wiki.New(pool), tenant(t, pool, "acme")
	if _, err := pool.Exec(t.Context(), `UPDATE workspaces SET storage_quota = 10`); err != nil {
		t.Fatal(err)
	}
	put := func(path, content string) error {
		_, err := s.Put(t.Context(), ws, path, content)
		return err
	}
	_, _, replaced := s.WritePage(t.Context(), ws, "a", "123456", 0)
	for _, c := range []struct {
		name string
		err  error
		fits bool
	}{
		{"a page", replaced, true},
		{"a document", put("b.md", "1234"), true},
		{"one byte too many", put("c.md", "1"), false},
		{"a longer document", put("b.md", "12345"), false},
		{"a shorter document", put("b.md", "123"), true},
		{"the byte that is free now", put("c.md", "1"), true},
	} {
		f := fault.From(c.err)
		refused := f != nil && len(f.Detail.Violations) == 1 && f.Detail.Violations[0].Rule == "max_total"
		if (c.err == nil) != c.fits || refused == c.fits {
			t.Errorf("%s: %v", c.name, c.err)
		}
	}
}
