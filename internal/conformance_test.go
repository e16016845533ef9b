package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/docs"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/apikey"
)

// rule is a line of docs/internals/conformance.md.
type rule struct {
	line        int
	text, page  string
	tests, rest []string // the tests that the line names, and the rest of it
}

var (
	quoted    = regexp.MustCompile("`([^`]+)`")
	testNamed = regexp.MustCompile(`^[a-z0-9]+(/[a-z0-9]+)*\.(Test|Fuzz)\w+$`)
)

// rules reads the tables of the page.
func rules(t *testing.T) (list []rule, page string) {
	t.Helper()
	data, err := docs.Files.ReadFile("internals/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(data), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if !strings.HasPrefix(line, "|") || line == "| rule | page | proved by |" || line == "|---|---|---|" {
			continue
		}
		if len(cells) != 3 {
			t.Errorf("line %d has %d cells, want rule, page and tests", i+1, len(cells))
			continue
		}
		r := rule{line: i + 1, text: strings.TrimSpace(cells[0]), page: strings.TrimSpace(cells[1])}
		for name := range strings.SplitSeq(strings.TrimSpace(cells[2]), ", ") {
			if name = strings.Trim(name, "`"); testNamed.MatchString(name) {
				r.tests = append(r.tests, name)
			} else {
				r.rest = append(r.rest, name)
			}
		}
		list = append(list, r)
	}
	return list, string(data)
}

// tests lists the tests below this directory, as package.Name.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	all := make(map[string]bool)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Recv == nil && f.Name.Name != "TestMain" && len(f.Type.Params.List) == 1 {
				all[filepath.Base(filepath.Dir(path))+"."+f.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRulesHaveTests compares docs/internals/conformance.md with the existing tests.
func TestRulesHaveTests(t *testing.T) {
	t.Parallel()
	list, page := rules(t)
	known := tests(t)
	seen := make(map[string]int)
	for _, r := range list {
		if r.text == "" || len(r.tests) == 0 {
			t.Errorf("line %d: %q has no test", r.line, r.text)
		}
		if found, err := fs.Glob(docs.Files, "*/"+r.page+".md"); err != nil || len(found) != 1 {
			t.Errorf("line %d: no folder of docs has a page %s.md", r.line, r.page)
		}
		for _, name := range r.rest {
			t.Errorf("line %d: %q names no test", r.line, name)
		}
		for _, name := range r.tests {
			if !known[name] {
				t.Errorf("line %d: %s does not exist", r.line, name)
			}
		}
		if before := seen[r.text]; before > 0 {
			t.Errorf("line %d repeats line %d", r.line, before)
		}
		seen[r.text] = r.line
	}
	if len(list) < 100 {
		t.Errorf("only %d rules were read", len(list))
	}
	var words []string // words that rules contain as code
	for _, r := range list {
		for _, m := range quoted.FindAllStringSubmatch(r.text, -1) {
			words = append(words, m[1])
		}
	}
	for _, word := range vocabulary() {
		if !slices.Contains(words, word) {
			t.Errorf("no rule mentions `%s`", word)
		}
	}
	if !strings.Contains(page, "TestRulesHaveTests") {
		t.Error("the page does not name this test")
	}
}

// vocabulary returns the closed lists of names in the API.
func vocabulary() (words []string) {
	for _, c := range fault.Codes() {
		words = append(words, string(c))
	}
	for _, c := range event.Codes {
		words = append(words, string(c))
	}
	for _, k := range []event.Kind{event.KindOpen, event.KindText, event.KindToolUse, event.KindToolResult, event.KindInputRequired,
		event.KindUsage,
		event.KindStructured, event.KindAttachment, event.KindError, event.KindDone} {
		words = append(words, string(k))
	}
	for _, s := range apikey.All {
		words = append(words, string(s))
	}
	slices.Sort(words)
	return words
}
