package wiki_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/store/wiki"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPageOfReversesPageKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		page := rapid.StringMatching(`[a-z][a-z0-9./-]{0,30}[a-z]`).Draw(t, "page")
		if got, ok := wiki.PageOf(wiki.PageKey(page)); !ok || got != page {
			t.Fatalf("PageOf(PageKey(%q)) = %q, %t", page, got, ok)
		}
	})
	for _, path := range []string{"", "onboarding.md", "wiki/", "wiki/.md", "wiki/a/.md", "wiki/notes.txt", "WIKI/a.md", "other/wiki/a.md"} {
		if page, ok := wiki.PageOf(path); ok {
			t.Errorf("PageOf(%q) = %q", path, page)
		}
	}
}

// badPaths are paths that no document can have.
var badPaths = map[string]string{
	"nothing":            "",
	"absolute":           "/etc/passwd",
	"parent":             "../secrets.txt",
	"parent inside":      "policies/../../secrets.txt",
	"parent page":        wiki.PageKey("../secrets"),
	"dot":                "./a.txt",
	"empty segment":      "a//b.txt",
	"trailing slash":     "a/",
	"backslash":          `..\secrets.txt`,
	"NUL":                "a\x00b.txt",
	"newline":            "a\nb.txt",
	"broken UTF-8":       "a\xff.txt",
	"too long":           strings.Repeat("é", 128),
	"page without name":  wiki.PageKey(""),
	"no page below wiki": "wiki/notes.txt",
}
