package search_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/search"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStemMeetsItsInflections(t *testing.T) {
	t.Parallel()
	for _, family := range []string{
		"resume resumes resumed resuming",
		"policy policies",
		"stop stops stopped stopping",
		"cancel cancels canceled cancelled canceling cancelling",
		"stream streams streamed streaming",
		"box boxes boxing",
		"access accesses accessed",
		"summarise summarize summarised summarizing",
		"expense expenses",
		"key keys",
	} {
		words := strings.Fields(family)
		for _, w := range words[1:] {
			if search.Stem(w) != search.Stem(words[0]) {
				t.Errorf("Stem(%q) = %q, Stem(%q) = %q", w, search.Stem(w), words[0], search.Stem(words[0]))
			}
		}
	}
	for _, w := range []string{"sse", "status", "bus", "analysis", "sing", "red", "überraschung", "api"} {
		if len(search.Stem(w)) < 3 {
			t.Errorf("Stem(%q) = %q", w, search.Stem(w))
		}
	}
}

func TestTermsSplitIdentifiersAndDropStopWords(t *testing.T) {
	t.Parallel()
	want := []string{"last", "event", "id"}
	for _, text := range []string{"last_event_id", "Last-Event-ID", "the LAST event's id", "“last” event.id?"} {
		if diff := cmp.Diff(want, search.Terms(text)); diff != "" {
			t.Errorf("Terms(%q): %s", text, diff)
		}
	}
	if got := search.Terms("How do I get it, and what is that?"); len(got) != 0 {
		t.Errorf("Terms of nothing but stop words = %q", got)
	}
}

const manual = `# Coffee machine

It makes coffee.

## Descaling

Run the descaling programme every month.

` + "```sh\n# not a heading\n\ndescale --now\n```" + `

## Cleaning

Wipe the machine with a damp cloth.
`

func TestSplitCutsAtHeadingsAndKnowsLines(t *testing.T) {
	t.Parallel()
	want := []search.Section{
		{Doc: "m", Title: "Coffee machine", Heading: "Coffee machine", Line: 1, Text: "It makes coffee."},
		{Doc: "m", Title: "Coffee machine", Heading: "Descaling", Line: 5,
			Text: "Run the descaling programme every month.\n\n```sh\n# not a heading\n\ndescale --now\n```"},
		{Doc: "m", Title: "Coffee machine", Heading: "Cleaning", Line: 15, Text: "Wipe the machine with a damp cloth."},
	}
	if diff := cmp.Diff(want, search.Split("m", manual)); diff != "" {
		t.Error(diff)
	}
}

func TestSplitLosesNoLine(t *testing.T) {
	t.Parallel()
	line := rapid.SampledFrom([]string{"", "", "# Heading", "## Other", "text", "```", "- item", strings.Repeat("long ", 60), "#no heading",
		"  indented"})
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(line).Draw(t, "lines")
		got := map[string]int{}
		headings := map[string]bool{}
		for _, s := range search.Split("d", strings.Join(lines, "\n")) {
			headings[s.Heading] = true
			for l := range strings.SplitSeq(s.Text, "\n") {
				got[strings.TrimSpace(l)]++
			}
			if s.Line < 1 || s.Line > len(lines) {
				t.Fatalf("section at line %d of %d", s.Line, len(lines))
			}
		}
		want := map[string]int{}
		fenced := false
		for _, l := range lines {
			if l == "```" {
				fenced = !fenced
			}
			if strings.HasPrefix(l, "# ") && !fenced || strings.HasPrefix(l, "## ") && !fenced {
				continue
			}
			want[strings.TrimSpace(l)]++
		}
		delete(want, "")
		delete(got, "")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestFindRanksThePassageThatAnswers(t *testing.T) {
	t.Parallel()
	x := search.New(search.Split("manual", manual))
	for query, heading := range map[string]string{
		"How often should I descale?":    "Descaling",
		"cleaning the coffee machine":    "Cleaning",
		"What do I use to wipe it down?": "Cleaning",
	} {
		hits := x.Find(query, 3)
		if len(hits) == 0 || hits[0].Heading != heading {
			t.Errorf("Find(%q) = %+v, want %s first", query, hits, heading)
		}
	}
	if hits := x.Find("quarterly revenue", 3); len(hits) != 0 {
		t.Errorf("Find found %+v", hits)
	}
	if hits := x.Find("descaling the quarterly revenue", 1); len(hits) != 1 || hits[0].Coverage <= 0 || hits[0].Coverage >= 0.5 {
		t.Errorf("coverage of a question that is mostly about another topic: %+v", hits)
	}
	if hits := search.New(nil).Find("anything", 3); len(hits) != 0 {
		t.Errorf("an empty index found %+v", hits)
	}
}

func TestFindIsDeterministic(t *testing.T) {
	t.Parallel()
	word := rapid.SampledFrom(strings.Fields("alpha beta gamma delta epsilon zeta eta theta iota kappa"))
	text := rapid.Map(rapid.SliceOfN(word, 0, 12), func(w []string) string { return strings.Join(w, " ") })
	rapid.Check(t, func(t *rapid.T) {
		var sections []search.Section
		for i, s := range rapid.SliceOfN(text, 0, 12).Draw(t, "sections") {
			sections = append(sections, search.Section{Doc: "d", Line: i + 1, Text: s})
		}
		query := text.Draw(t, "query")
		first := search.New(sections).Find(query, 5)
		if diff := cmp.Diff(first, search.New(sections).Find(query, 5)); diff != "" {
			t.Fatal(diff)
		}
		for i, h := range first {
			if h.Coverage < 0 || h.Coverage > 1.000001 {
				t.Fatalf("coverage %v", h.Coverage)
			}
			if i > 0 && h.Score > first[i-1].Score {
				t.Fatal("not in order of score")
			}
		}
	})
}

func TestNearestKnowsWhatWasMeant(t *testing.T) {
	t.Parallel()
	pages := []string{"expenses", "onboarding", "release-process", "security", "support-handbook"}
	for name, want := range map[string]string{
		"onbording":       "onboarding",
		"Release Process": "release-process",
		"release_proces":  "release-process",
		"support":         "support-handbook",
		"expense":         "expenses",
		"Security":        "security",
		"wiki/onboarding": "onboarding",
	} {
		if got := search.Nearest(name, pages, 3); len(got) == 0 || got[0] != want {
			t.Errorf("Nearest(%q) = %q, want %q first", name, got, want)
		}
	}
	for _, name := range []string{"", "quarterly-numbers", strings.Repeat("x", 1_000_000)} {
		if got := search.Nearest(name, pages, 3); len(got) > 0 {
			t.Errorf("Nearest(%.20q) = %q", name, got)
		}
	}
}
