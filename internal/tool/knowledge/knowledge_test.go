package knowledge_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/knowledge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// library is a workspace with documents, and the tools for them.
type library struct {
	workspace uuid.UUID
	tools     map[string]tool.Tool
}

func open(t *testing.T, documents map[string]string) library {
	t.Helper()
	pool := dbtest.New(t)
	w, err := workspace.New(pool).Create(t.Context(), "acme", "", "")
	if err != nil {
		t.Fatal(err)
	}
	store := wiki.New(pool)
	for path, content := range documents {
		if _, err := store.Put(t.Context(), w.ID, path, content); err != nil {
			t.Fatal(err)
		}
	}
	l := library{workspace: w.ID, tools: make(map[string]tool.Tool)}
	for _, tl := range knowledge.Tools(store, nil) {
		l.tools[tl.Spec().Name] = tl
	}
	return l
}

func (l library) call(t testing.TB, name, input string) tool.Result {
	t.Helper()
	res, err := l.tools[name].Call(t.Context(), tool.Call{ID: "call_1", Workspace: l.workspace, Input: json.RawMessage(input)})
	if err != nil {
		t.Fatalf("%s %s: %v", name, input, err)
	}
	return res
}

var office = map[string]string{
	"wiki/onboarding.md":  "# Onboarding\n\nGet your badge at the desk.\n",
	"wiki/team/sales.md":  "Sales meets on Mondays.",
	"policies/travel.txt": "one\ntwo\nthree badge\nfour\n",
	"empty.txt":           "",
}

func TestToolsAnswerAndSayWhatTheyRead(t *testing.T) {
	t.Parallel()
	l := open(t, office)
	ref := func(source string, paths ...string) (refs []event.Reference) {
		for _, p := range paths {
			refs = append(refs, event.Reference{Path: p, Source: source})
		}
		return refs
	}
	for _, c := range []struct {
		tool, input, output string
		refs                []event.Reference
	}{
		{"wiki_read", `{"page":"onboarding"}`, office["wiki/onboarding.md"], ref("wiki_read", "onboarding")},
		{"wiki_read", `{"page":"wiki/onboarding.md"}`, office["wiki/onboarding.md"], ref("wiki_read", "onboarding")},
		{"wiki_read", `{"page":"team/sales"}`, office["wiki/team/sales.md"], ref("wiki_read", "team/sales")},
		{"read", `{"path":"policies/travel.txt"}`, "one\ntwo\nthree badge\nfour", ref("read", "policies/travel.txt")},
		{"read", `{"path":"policies/travel.txt","offset":2,"limit":2}`, "two\nthree badge\n[lines 2 to 3 of 4]",
			ref("read", "policies/travel.txt")},
		{"read", `{"path":"policies/travel.txt","offset":4}`, "four\n[lines 4 to 4 of 4]", ref("read", "policies/travel.txt")},
		{"read", `{"path":"wiki/team/sales.md"}`, "Sales meets on Mondays.", ref("read", "wiki/team/sales.md")},
		{"read", `{"path":"empty.txt"}`, "", ref("read", "empty.txt")},
		{"grep", `{"pattern":"badge"}`, "policies/travel.txt:3: three badge\nwiki/onboarding.md:3: Get your badge at the desk.",
			ref("grep", "policies/travel.txt", "wiki/onboarding.md")},
		{"grep", `{"pattern":"(?i)MONDAYS","path":"wiki/"}`, "wiki/team/sales.md:1: Sales meets on Mondays.", ref("grep", "wiki/team/sales.md")},
		{"grep", `{"pattern":"t"}`, "policies/travel.txt:2: two\npolicies/travel.txt:3: three badge\nwiki/onboarding.md:3: Get your " +
			"badge at the desk.\nwiki/team/sales.md:1: Sales meets on Mondays.",
			ref("grep", "policies/travel.txt", "wiki/onboarding.md", "wiki/team/sales.md")},
		{"grep", `{"pattern":"nobody"}`, "No line matches.", nil},
		{"search", `{"query":"Who has badges?"}`, "wiki/onboarding.md:1: Onboarding | Get your badge at the " +
			"desk.\npolicies/travel.txt:1: travel.txt | one two three badge four",
			ref("search", "wiki/onboarding.md", "policies/travel.txt")},
		{"search", `{"query":"badge","path":"policies/"}`, "policies/travel.txt:1: travel.txt | one two three badge four",
			ref("search", "policies/travel.txt")},
		{"search", `{"query":"badge -desk"}`, "policies/travel.txt:1: travel.txt | one two three badge four",
			ref("search", "policies/travel.txt")},
		{"search", `{"query":"\"badge at the desk\""}`, "wiki/onboarding.md:1: Onboarding | Get your badge at the desk.",
			ref("search", "wiki/onboarding.md")},
		{"search", `{"query":"sales team"}`, "wiki/team/sales.md:1: sales.md | Sales meets on Mondays.", ref("search", "wiki/team/sales.md")},
		{"search", `{"query":"zebra"}`, "Nothing was found. Try other words, or grep.", nil},
		{"search", `{"query":"?"}`, "Nothing was found. Try other words, or grep.", nil},
	} {
		if diff := cmp.Diff(tool.Result{OK: true, Output: c.output, References: c.refs}, l.call(t, c.tool, c.input)); diff != "" {
			t.Errorf("%s %s: %s", c.tool, c.input, diff)
		}
	}
}

func TestRefusalsShowTheWayOut(t *testing.T) {
	t.Parallel()
	l := open(t, office)
	for _, c := range []struct{ tool, input, want string }{
		{"wiki_read", `{"page":"onbording"}`, `Wiki page "onbording" does not exist. Did you mean "onboarding"?`},
		{"wiki_read", `{"page":"zzz"}`, `Wiki page "zzz" does not exist. Existing pages: "onboarding", "team/sales".`},
		{"wiki_read", `{"page":"../policies/travel.txt"}`, `Wiki page "../policies/travel.txt" does not exist.`},
		{"wiki_read", `{}`, `"page" is required`},
		{"wiki_read", `{"page":7}`, `"page" must be a string, not a number.`},
		{"wiki_read", `{"page":"` + strings.Repeat("x", 1<<20) + `"}`, `The input is too long.`},
		{"read", `{"path":"policies/travle.txt"}`, `Did you mean "policies/travel.txt"?`},
		{"read", `{"path":"/etc/passwd"}`, `File "/etc/passwd" does not exist.`},
		{"read", `{"path":"policies/travel.txt","offset":9}`, `has 4 lines; there is no line 9`},
		{"read", `{"path":"policies/travel.txt","offset":-1}`, `count from 1`},
		{"read", `{"path":"policies/travel.txt","limit":"ten"}`, `"limit" must be a whole number, not a string.`},
		{"grep", `{"pattern":"("}`, `RE2`},
		{"grep", `{"pattern":""}`, `"pattern" is required`},
		{"search", `{"query":" "}`, `"query" is required`},
		{"search", `{"query":"` + strings.Repeat("a", 1001) + `"}`, `at most 1000 bytes`},
		{"grep", `{"pattern":"` + strings.Repeat("a", 1001) + `"}`, `at most 1000 bytes`},
	} {
		res := l.call(t, c.tool, c.input)
		if res.OK || !strings.Contains(res.Output, c.want) || res.References != nil {
			t.Errorf("%s %.60s = %+v, want %q", c.tool, c.input, res, c.want)
		}
	}
}

func TestLongDocumentsAreCutAndSaySo(t *testing.T) {
	t.Parallel()
	var numbered strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&numbered, "line %d %s\n", i+1, strings.Repeat("é", 20))
	}
	l := open(t, map[string]string{
		"wiki/long.md": numbered.String(),
		"long.txt":     numbered.String(),
		"one-line.txt": strings.Repeat("é", 40_000) + "needle" + strings.Repeat("é", 40_000),
	})
	for _, c := range []struct{ tool, input, end string }{
		{"read", `{"path":"long.txt","limit":100}`, "[lines 1 to 100 of 2000]"},
		{"read", `{"path":"long.txt"}`, " of 2000]"},
		{"read", `{"path":"long.txt","limit":9999}`, " of 2000]"},
		{"read", `{"path":"one-line.txt"}`, "[line 1 of 1 is cut here, because it is too long]"},
		{"grep", `{"pattern":"line"}`, "[More lines match. Narrow the pattern, or give a path.]"},
		{"grep", `{"pattern":"needle"}`, "…"},
	} {
		res := l.call(t, c.tool, c.input)
		if !res.OK || c.tool == "read" && len(res.Output) > tool.MaxOutput || !utf8.ValidString(res.Output) ||
			!strings.HasSuffix(res.Output, c.end) {
			t.Errorf("%s %s: %d bytes, ending in %q", c.tool, c.input, len(res.Output), res.Output[max(0, len(res.Output)-80):])
		}
	}
	if res := l.call(t, "grep", `{"pattern":"needle"}`); !strings.Contains(res.Output, "needle") {
		t.Error("the match is not in the part of the line that is shown")
	}
	if res := l.call(t, "wiki_read", `{"page":"long"}`); res.Output != numbered.String() { // the agent shortens it
		t.Errorf("%d bytes of a page of %d", len(res.Output), numbered.Len())
	}
	// A reader that follows the offsets gets every line once.
	var got []string
	for next := 1; next <= 2000; {
		res := l.call(t, "read", fmt.Sprintf(`{"path":"long.txt","offset":%d,"limit":500}`, next))
		part := strings.Split(res.Output, "\n")
		got = append(got, part[:len(part)-1]...)
		if len(part) < 2 {
			t.Fatalf("nothing follows line %d: %q", next, res.Output)
		}
		next += len(part) - 1
	}
	if diff := cmp.Diff(strings.TrimSuffix(numbered.String(), "\n"), strings.Join(got, "\n")); diff != "" {
		t.Error("the pages together are not the whole document")
	}
}

func TestHostileInputIsRefused(t *testing.T) {
	t.Parallel()
	l := open(t, office)
	hostile := rapid.OneOf(
		rapid.SampledFrom([]string{
			``, `null`, `[]`, `"page"`, `7`, `{`, `{"page":null}`, `{"page":["a"]}`, `{"path":{}}`, `{"pattern":true}`, `{"path":"a\u0000b"}`,
			`{"page":"a\u0000"}`, `{"pattern":"\u0000","path":"\u0000"}`, `{"pattern":"(((((((((("}`,
			`{"path":"empty.txt","offset":9223372036854775807,"limit":9223372036854775807}`,
			`{"path":"empty.txt","offset":1e400}`, `{"_malformed":"page"}`, `{"page":"\ud800"}`, `{"pattern":"(?s).*","path":"../"}`,
			strings.Repeat("[", 9000), strings.Repeat(`{"page":`, 2000), `{"page":"` + strings.Repeat("x", 1<<20) + `"}`,
		}),
		rapid.Map(rapid.String(), func(s string) string {
			b, _ := json.Marshal(map[string]any{"page": s, "path": s, "pattern": s})
			return string(b)
		}),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
	)
	rapid.Check(t, func(r *rapid.T) {
		input := hostile.Draw(r, "input")
		for name, tl := range l.tools {
			res := l.call(t, name, input)
			if !res.OK && (res.Output == "" || len(res.Output) > 4000 || len(res.References) > 0) {
				r.Fatalf("%s %.80q = %+v", name, input, res)
			}
			if summary := tl.(tool.Summarizer).Summary(json.RawMessage(input)); summary == "" || utf8.RuneCountInString(summary) > 2000 ||
				strings.ContainsAny(summary, "\n\x00") {
				r.Fatalf("summary of %s %.80q: %q", name, input, summary)
			}
		}
	})
}

func TestSpecsAreCompleteAndSafeToRunAgain(t *testing.T) {
	t.Parallel()
	for _, tl := range knowledge.Tools(nil, nil) {
		s := tl.Spec()
		var schema struct{ Type string }
		if err := json.Unmarshal(s.Schema, &schema); err != nil || schema.Type != "object" || s.Description == "" || !s.Idempotent {
			t.Errorf("%s: %v, %+v", s.Name, err, s)
		}
	}
	for input, want := range map[string]string{`{"page":"onboarding"}`: "read wiki page onboarding", `{}`: "read a wiki page"} {
		if got := knowledge.Tools(nil, nil)[0].(tool.Summarizer).Summary(json.RawMessage(input)); got != want {
			t.Errorf("summary of %s: %q", input, got)
		}
	}
}
