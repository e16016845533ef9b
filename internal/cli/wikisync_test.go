package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSyncSendsOnlyChanges makes documents equal to a directory that changes.
func TestSyncSendsOnlyChanges(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	for _, dir := range []string{"book/team", "book/.git"} {
		if err := os.MkdirAll(filepath.Join(sh.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	fileOf(t, sh, "other.md", "other")
	sh.must("wiki", "put", "wiki/other.md", "other.md")
	type changes struct {
		Added, Changed, Deleted []string
		Unchanged, Extra        int
	}
	none := []string{}
	for i, c := range []struct {
		files   map[string]string // "": removed
		options []string
		want    changes
	}{
		{map[string]string{"a.md": "one", "team/b.md": "two", "c.txt": "no Markdown", ".git/d.md": "hidden"}, nil,
			changes{[]string{"wiki/a.md", "wiki/team/b.md"}, none, none, 0, 1}},
		{nil, nil, changes{none, none, none, 2, 1}},
		{map[string]string{"a.md": "won", "e.md": "three"}, nil, changes{[]string{"wiki/e.md"}, []string{"wiki/a.md"}, none, 1, 1}},
		{map[string]string{"a.md": "", "team/b.md": "longer"}, []string{"--delete", "--yes"},
			changes{none, []string{"wiki/team/b.md"}, []string{"wiki/a.md", "wiki/other.md"}, 1, 0}},
		{nil, []string{"--to", "manuals"}, changes{[]string{"manuals/e.md", "manuals/team/b.md"}, none, none, 0, 0}},
	} {
		for name, content := range c.files {
			fileOf(t, sh, filepath.Join("book", name), content)
			if content == "" {
				if err := os.Remove(filepath.Join(sh.dir, "book", name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		var got struct{ Data changes }
		out := sh.must(append([]string{"wiki", "sync", "book", "--json"}, c.options...)...)
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got.Data); diff != "" {
			t.Errorf("sync %d: %s", i, diff)
		}
	}
	fileOf(t, sh, "extra.md", "extra")
	sh.must("wiki", "put", "manuals/", "extra.md", "other.md")
	if _, _, code := sh.run("wiki", "sync", "book", "--to", "manuals/", "--delete"); code == 0 {
		t.Error("documents were deleted without consent")
	}
	if got := sh.must("wiki", "show", "manuals/extra.md"); got != "extra" {
		t.Errorf("the document is %q", got)
	}
}

// TestSyncRejectsWhatIsNotADocument checks a directory that does not exist, a file, and directories
// with a file that is not text or is too long, of which nothing is written.
func TestSyncRejectsWhatIsNotADocument(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	for _, dir := range []string{"book", "long"} {
		if err := os.Mkdir(filepath.Join(sh.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		fileOf(t, sh, dir+"/a.md", "text")
	}
	fileOf(t, sh, "book/b.md", "\xff\xfe")
	fileOf(t, sh, "nul.md", "PNG\x00")
	fileOf(t, sh, "long/b.md", strings.Repeat("x", 1<<20+1))
	for line, want := range map[string]string{
		"wiki sync nowhere":            "nowhere cannot be read.\n        No such file or directory.",
		"wiki sync book/a.md":          "a.md is not a directory.",
		"wiki sync book":               "b.md is not text in UTF-8.",
		"wiki put a/b.txt book/b.md":   "The file book/b.md is not text in UTF-8.",
		"wiki put a/b.txt nul.md":      "The file nul.md is not text in UTF-8.",
		"wiki sync long":               "b.md has 1048577 bytes.",
		"audit verify --heads nowhere": "nowhere cannot be read.\n        No such file or directory.",
	} {
		if _, errs, code := sh.run(strings.Fields(line)...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %s", line, code, errs)
		}
	}
	if list := sh.must("wiki", "list", "--json"); strings.Contains(list, "a.md") {
		t.Errorf("a part of the directory was written: %s", list)
	}
}

// TestSyncSkipsLinks synchronizes a directory behind a symbolic link. A link in it, which may lead
// to any file of the machine, is named and skipped.
func TestSyncSkipsLinks(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	if err := os.Mkdir(filepath.Join(sh.dir, "book"), 0o700); err != nil {
		t.Fatal(err)
	}
	fileOf(t, sh, "book/a.md", "text")
	fileOf(t, sh, "private.txt", "private")
	for link, to := range map[string]string{"book/link.md": "../private.txt", "shelf": "book"} {
		if err := os.Symlink(to, filepath.Join(sh.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if _, errs, code := sh.run("wiki", "sync", "shelf"); code != 0 || !strings.Contains(errs, "link.md: it is a symbolic link.") ||
		!strings.Contains(errs, "1 added") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if list := sh.must("wiki", "list", "--json"); !strings.Contains(list, "wiki/a.md") || strings.Contains(list, "link.md") {
		t.Errorf("the documents are %s", list)
	}
}
