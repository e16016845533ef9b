package internal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/parley-server/parley/internal/testing/need"
)

var (
	fenced   = regexp.MustCompile("(?ms)^```.*?^```$")
	linked   = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	headed   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	protocol = regexp.MustCompile(`^[a-z]+:`)
	pageName = regexp.MustCompile(`\bdocs/[\w/-]+\.md\b`)
)

// TestLinksLeadSomewhere reads every page: each relative link names a file, each anchor a heading,
// and the index links to every page. A docs/….md in the text or the code exists.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	pages, links := markdown(t), 0
	for _, page := range pages {
		for _, m := range linked.FindAllStringSubmatch(prose(t, page), -1) {
			if protocol.MatchString(m[1]) {
				continue
			}
			links++
			path, anchor, _ := strings.Cut(m[1], "#")
			target := filepath.Join(filepath.Dir(page), path)
			if path == "" {
				target = page
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the target of the link %s does not exist", page, m[1])
			} else if anchor != "" && !slices.Contains(anchors(t, target), anchor) {
				t.Errorf("%s: the link %s names a heading that does not exist", page, m[1])
			}
		}
	}
	if len(pages) < 30 || links < 150 {
		t.Errorf("only %d pages with %d links were read", len(pages), links)
	}
	index := prose(t, "../docs/README.md")
	for _, page := range pages {
		path, ours := strings.CutPrefix(page, "../docs/")
		if ours && path != "README.md" && !strings.HasPrefix(path, "guides/clients/") && !strings.Contains(index, "]("+path+")") {
			t.Errorf("docs/README.md has no link to %s", path)
		}
	}
}

// TestNamedPagesExist reads the code, the pages and the OpenAPI document for names of pages.
func TestNamedPagesExist(t *testing.T) {
	t.Parallel()
	found := 0
	for _, file := range append(filesBelow(t, ".go", ".yaml", ".js"), markdown(t)...) {
		for _, name := range pageName.FindAllString(readFile(t, file), -1) {
			found++
			if _, err := os.Stat(filepath.Join("..", name)); err != nil {
				t.Errorf("%s names %s, which does not exist", file, name)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d names were found", found)
	}
}

// markdown lists the pages of the repository.
func markdown(t *testing.T) []string {
	t.Helper()
	return filesBelow(t, ".md")
}

// filesBelow lists the files of the repository with some extensions, without those that git
// ignores.
func filesBelow(t *testing.T, extensions ...string) (files []string) {
	t.Helper()
	out, err := exec.Command("git", "-C", "..", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		need.Missing(t, "not a checkout of git: %v", err)
	}
	for path := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		dirs := strings.Split(filepath.Dir(path), "/")
		if !slices.Contains(extensions, filepath.Ext(path)) || slices.Contains(dirs, "testdata") || slices.Contains(dirs, "demo") {
			continue
		}
		path = filepath.Join("..", path)
		if _, err := os.Stat(path); err == nil { // else it is deleted, and not committed yet
			files = append(files, path)
		}
	}
	return files
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// prose returns a page without its blocks of code.
func prose(t *testing.T, page string) string {
	t.Helper()
	return fenced.ReplaceAllString(readFile(t, page), "")
}

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(t *testing.T, page string) (list []string) {
	t.Helper()
	for _, m := range headed.FindAllStringSubmatch(prose(t, page), -1) {
		list = append(list, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1]))
	}
	return list
}
