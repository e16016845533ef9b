package permission_test

import "testing"

func TestPatternsOfPathsStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"handbook/**", "handbook/a", true},
		{"handbook/**", "handbook/a/b/c", true},
		{"handbook/**", "handbook/über uns", true},
		{"handbook/**", "handbook", false},
		{"handbook/**", "handbook/", false},
		{"handbook/**", "handbooks/a", false},
		{"handbook/**", "Handbook/a", false},
		{"handbook/**", "x/handbook/a", false},
		{"handbook/**", "handbook/../secret", false},
		{"handbook/**", "handbook/../handbook/a", false},
		{"handbook/**", "handbook//a", false},
		{"handbook/**", "handbook/./a", false},
		{"handbook/**", "./handbook/a", false},
		{"handbook/**", "/handbook/a", false},
		{"handbook/**", "../handbook/a", false},
		{"handbook/**", `handbook/a\b`, false},
		{"handbook/**", "handbook/a\x00b", false},
		{"handbook/**", "handbook/a\nb", false},
		{"handbook/**", "handbook/\u202ea", false},
		{"handbook/**", "handbook/.git", false},
		{"handbook/**", "handbook/.git/config", false},
		{"handbook/**", "handbook/a/.npmrc", false},
		{"handbook/.drafts/**", "handbook/.drafts/a", true},
		{"handbook/*", "handbook/a", true},
		{"handbook/*", "handbook/a/b", false},
		{"handbook/*", "handbook/.a", false},
		{"handbook/**", "handbook/HEAD", false},
		{"handbook/**", "handbook/HEAD/a", false},
		{"handbook/**", "handbook/a/head", false},
		{"handbook/*", "handbook/HEAD", false},
		{"handbook/H*", "handbook/HEAD", false},
		{"handbook/*D", "handbook/HEAD", false},
		{"handbook/HEAD*", "handbook/HEAD", false},
		{"H*/a", "HEAD/a", false},
		{"**/a", "HEAD/a", false},
		{"handbook/HEAD", "handbook/HEAD", true},
		{"handbook/HEAD/**", "handbook/HEAD/a", true},
		{"**/HEAD", "handbook/HEAD", true},
		{"handbook/**", "handbook/HEADER", true},
		{"handbook/a*", "handbook/abc", true},
		{"handbook/a*c*", "handbook/abcd", true},
		{"handbook/a*c*", "handbook/abd", false},
		{"*.csv", "sales.csv", true},
		{"*.csv", "sales.csv.sh", false},
		{"*.csv", ".csv", false},
		{"*/notes", "a/notes", true},
		{"*/notes", "a/b/notes", false},
		{"**/notes", "notes", true},
		{"**/notes", "a/b/notes", true},
		{"**/notes", "a/.b/notes", false},
		{"a/**/z", "a/z", true},
		{"a/**/z", "a/b/c/z", true},
		{"a/**/z", "a/b/c/y", false},
		{"a/**/m/**", "a/m/x", true},
		{"a/**/m/**", "a/b/m/m/x", true},
		{"a/**/m/**", "a/b/m", false},
		{"reports/q1.md.txt", "reports/q1.md.txt", true},
	} {
		if got := must(t, "write("+c.pattern+")").Matches("write", file(c.path)); got != c.want {
			t.Errorf("write(%s) covers %q: %t", c.pattern, c.path, got)
		}
		if got := must(t, "wiki_write("+c.pattern+")").Matches("wiki_write", page(c.path)); got != c.want {
			t.Errorf("wiki_write(%s) covers %q: %t", c.pattern, c.path, got)
		}
	}
	// The tool accepts the document path of a page; so does the pattern.
	for name, want := range map[string]bool{"wiki/handbook/a.md": true, "handbook/a.md": true, "wiki/private": false,
		"wiki/../handbook/a": false} {
		if got := must(t, "wiki_write(handbook/**)").Matches("wiki_write", page(name)); got != want {
			t.Errorf("wiki_write(handbook/**) covers %q: %t", name, got)
		}
	}
}
