package knowledge_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/knowledge"
)

func TestPagesAreWrittenOverWhatWasRead(t *testing.T) {
	t.Parallel()
	l := open(t, office)
	for i, c := range []struct {
		tool, input string
		ok          bool
		want        string
	}{
		{"wiki_write", `{"page":"news","content":"one"}`, true, `The wiki page "news" is written; it is at version 1.`},
		{"wiki_write", `{"page":"news","content":"one"}`, true, `at version 1.`},
		{"wiki_write", `{"page":"news","content":"two"}`, false,
			`There is a wiki page "news", at version 1. To replace it, read it, then write with expected_version 1.`},
		{"wiki_read", `{"page":"news","version":true}`, true, "[version 1]\none"},
		{"wiki_write", `{"page":"wiki/news.md","content":"two","expected_version":1}`, true, `at version 2.`},
		{"wiki_write", `{"page":"news","content":"two","expected_version":1}`, true, `at version 2.`}, // after a crash
		{"wiki_write", `{"page":"news","content":"three","expected_version":1}`, false,
			`The wiki page "news" is at version 2, not 1. Read it again, then write with expected_version 2.`},
		{"wiki_write", `{"page":"none","content":"x","expected_version":3}`, false,
			`Wiki page "none" does not exist. Leave expected_version out to make it.`},
		{"wiki_read", `{"page":"news"}`, true, "two"},
		{"grep", `{"pattern":"^two$"}`, true, "wiki/news.md:1: two"},
		{"wiki_write", `{"page":"empty","content":""}`, true, `at version 1.`},
		{"wiki_write", `{}`, false, `"page" is required`},
		{"wiki_write", `{"page":".md","content":"x"}`, false, `"page" is required`},
		{"wiki_write", `{"page":"x"}`, false, `"content" is required`},
		{"wiki_write", `{"page":"x","content":null}`, false, `"content" is required`},
		{"wiki_write", `{"page":"x","content":7}`, false, `"content" must be a string, not a number.`},
		{"wiki_write", `{"page":"x","content":"y","expected_version":"1"}`, false, `"expected_version" must be a whole number, not a string.`},
		{"wiki_write", `{"page":"x","content":"y","expected_version":-1}`, false, `counts from 1`},
		{"wiki_read", `{"page":"news","version":"yes"}`, false, `"version" must be a boolean, not a string.`},
		{"wiki_write", `{"page":"../x","content":"y"}`, false, `no empty, . or .. segments`},
		{"wiki_write", `{"page":"/x","content":"y"}`, false, `no empty, . or .. segments`},
		{"wiki_write", `{"page":"a\\b","content":"y"}`, false, `uses / between folders`},
		{"wiki_write", `{"page":"x","content":"a\u0000b"}`, false, `without NUL`},
		{"wiki_write", `{"page":"x","content":"` + strings.Repeat("x", 1<<20+1) + `"}`, false, `at most 1 MiB`},
		{"wiki_write", `{"page":"x","content":"` + strings.Repeat("x", 9<<20) + `"}`, false, `The input is too long.`},
	} {
		res := l.call(t, c.tool, c.input)
		if res.OK != c.ok || !strings.Contains(res.Output, c.want) {
			t.Errorf("%d: %s %.80s = %t, %.200q, want %q", i, c.tool, c.input, res.OK, res.Output, c.want)
		}
	}
}

func TestWritingIsSummedUp(t *testing.T) {
	t.Parallel()
	write := summarizer(t, "wiki_write")
	for input, want := range map[string]string{
		`{"page":"onboarding","content":"` + strings.Repeat("x", 1229) + `"}`: "write wiki page onboarding (1.2 KiB)",
		`{"page":"wiki/a/b.md","content":"éé"}`:                               "write wiki page a/b (4 bytes)",
		`{"page":"a","content":"` + strings.Repeat("x", 1<<20) + `"}`:         "write wiki page a (1.0 MiB)",
		`{"page":"a"}`:                    "write a wiki page",
		`{"page":7,"content":""}`:         "write a wiki page",
		`{"page":"a\nb","content":"<x>"}`: `write wiki page "a\nb" (3 bytes)`,
	} {
		if got := write.Summary(json.RawMessage(input)); got != want {
			t.Errorf("%.40s: %q, want %q", input, got, want)
		}
	}
}

func summarizer(t *testing.T, name string) tool.Summarizer {
	t.Helper()
	for _, tl := range knowledge.Tools(nil, nil) {
		if s, ok := tl.(tool.Summarizer); ok && tl.Spec().Name == name {
			return s
		}
	}
	t.Fatalf("no %s", name)
	return nil
}

// TestAPatternCoversThePageThatIsWritten: the permission check and the tool read the input of a
// call in the same way. A call that a pattern covers writes below the pattern's folder, or not at
// all.
func TestAPatternCoversThePageThatIsWritten(t *testing.T) {
	t.Parallel()
	l := open(t, map[string]string{})
	pattern, err := permission.Parse("wiki_write(handbook/**)")
	if err != nil {
		t.Fatal(err)
	}
	folder := rapid.SampledFrom([]string{"", "wiki/", "handbook/", "handbook/", "wiki/handbook/", "handbook/wiki/", "Handbook/"})
	part := rapid.SampledFrom([]string{"a", "a", "b.md", ".md", "/", "..", ".", "\\", "é", " ", "*", "%2e", "\x00", "handbook"})
	name := rapid.SampledFrom([]string{"page", "page", "page", "page", "Page", "content", "expected_version"})
	covered := 0
	rapid.Check(t, func(r *rapid.T) {
		var members []string
		for range rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(r, "members") {
			value, _ := json.Marshal(folder.Draw(r, "folder") + strings.Join(rapid.SliceOfN(part, 1, 3).Draw(r, "parts"), ""))
			members = append(members, `"`+name.Draw(r, "name")+`":`+string(value))
		}
		input := `{` + strings.Join(members, ",") + `,"content":"x"}`
		if !pattern.Matches("wiki_write", json.RawMessage(input)) {
			return
		}
		covered++
		res := l.call(t, "wiki_write", input)
		if res.OK && !strings.HasPrefix(res.Output, `The wiki page "handbook/`) {
			r.Fatalf("%s is covered, and %s", input, res.Output)
		}
	})
	if covered == 0 && !testing.Short() { // -short draws 20 calls, too few to be sure of one
		t.Error("no call was covered")
	}
	for _, input := range []string{`{"page":"handbook/a","content":"x"}`, `{"page":"wiki/handbook/a.md","content":"x"}`} {
		if !pattern.Matches("wiki_write", json.RawMessage(input)) || !strings.HasPrefix(l.call(t, "wiki_write", input).Output,
			`The wiki page "handbook/a"`) {
			t.Errorf("%s: covered %t", input, pattern.Matches("wiki_write", json.RawMessage(input)))
		}
	}
}
