package builtin

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/text"
)

// summarySentences is the maximum number of sentences in a summary.
const summarySentences = 5

var (
	summaryAsked = regexp.MustCompile(`(?i)\b(?:summari[sz]e|summary of|sum up|tl;?dr)\b:?\s*(.*)$`)
	pageNamed    = regexp.MustCompile(
		`(?i)^(?:me |us )?(?:the |our |a )?(?:wiki )?page\s+(?:called |named |about |on )?["'“‘\x60]?([^"'”’\x60?!]+)`)
	pageTrailing = regexp.MustCompile(`(?i)^(?:me |us )?(?:the |our )?["'“‘\x60]?([^"'”’\x60?!]+?)["'”’\x60]?\s+(?:wiki )?page\b`)
	pageAsked    = regexp.MustCompile(
		`(?i)^\W*(?:please )?(?:what does|what's in|what is in|read|show)\s+(?:me )?(?:the |our )?wiki ` +
			`page\s+["'“‘\x60]?([^"'”’\x60?!]+?)["'”’\x60]?(?:\s+says?|\s+contains?|\s+to me)?\W*$`)
)

// summaryOf finds the page in "Summarise the wiki page onboarding".
func summaryOf(question string) (page string, ok bool) {
	if m := pageAsked.FindStringSubmatch(question); m != nil {
		return pageName(m[1])
	}
	m := summaryAsked.FindStringSubmatch(question)
	if m == nil {
		return "", false
	}
	for _, named := range []*regexp.Regexp{pageNamed, pageTrailing} {
		if n := named.FindStringSubmatch(m[1]); n != nil {
			return pageName(n[1])
		}
	}
	return "", false
}

func pageName(s string) (string, bool) {
	s = strings.TrimSpace(strings.TrimRight(strings.TrimSpace(s), ".,;:"))
	for _, tail := range []string{" please", " for me", " in short", " briefly"} {
		s = strings.TrimSuffix(s, tail)
	}
	return s, s != "" && len(s) <= 255
}

// summarisePage reads a wiki page, then summarizes it.
func (c conversation) summarisePage(page string) reply {
	if c.step == 0 {
		if !c.offered["wiki_read"] {
			return sayText("I cannot look into the wiki: this workspace gives me no wiki_read tool.")
		}
		return useTool("wiki_read", map[string]string{"page": page})
	}
	r, ok := c.findResult("wiki_read")
	switch {
	case !ok:
		return sayText("I asked for the wiki page " + page + " and got no answer. Please ask again.")
	case r.failed:
		return sayText("I could not read it. " + firstLine(r.output))
	}
	page = argumentOf(r.call, "page", page)
	points := summarizePage(r.output)
	if len(points) == 0 {
		return sayText(fmt.Sprintf("The wiki page %s is empty.", page))
	}
	title := search.Title(r.output)
	if title == "" {
		title = page
	}
	return sayText(fmt.Sprintf("**%s** in short:\n\n- %s\n\nFrom the wiki page %s.", title, strings.Join(points, "\n- "), page))
}

// summarizePage selects the most representative sentences of a text, in their order. Beginnings of
// sections count more.
func summarizePage(content string) []string {
	type sentence struct {
		text  string
		at    int
		score float64
	}
	var all []sentence
	frequency := make(map[string]float64)
	for _, s := range search.Split("", content) {
		for i, text := range splitSentences(s.Text) {
			terms := search.Terms(text)
			if len(terms) < 2 {
				continue
			}
			for _, t := range terms {
				frequency[t]++
			}
			score := 0.0
			if i == 0 {
				score = 1
			}
			if len(all) == 0 {
				score = 2
			}
			all = append(all, sentence{text: text, at: len(all), score: score})
		}
	}
	for i := range all {
		terms := search.Terms(all[i].text)
		sum := 0.0
		for _, t := range terms {
			sum += math.Log(1 + frequency[t])
		}
		all[i].score += sum / math.Sqrt(float64(len(terms)))
	}
	slices.SortFunc(all, func(a, b sentence) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.at, b.at))
	})
	all = all[:min(len(all), summarySentences, 1+len(all)/2)]
	slices.SortFunc(all, func(a, b sentence) int { return cmp.Compare(a.at, b.at) })
	var out []string
	for _, s := range all {
		out = append(out, s.text)
	}
	return out
}

var (
	listItem = regexp.MustCompile(`^\s*(?:[-*+]|\d+[.)])\s+`)
	period   = regexp.MustCompile(`[.!?]\s+["“(]?[\p{Lu}\d]`)

	// abbreviated is a text whose last period does not end a sentence, and numbered is one if a number
	// follows.
	abbreviated = regexp.MustCompile(`(?i:\b(?:mr|mrs|ms|dr|prof|st|e\.\s?g|i\.\s?e|cf|vs|ca|approx))\.$|(?:^|[^\p{L}\d])[A-HJ-Z]\.$`)
	numbered    = regexp.MustCompile(`(?i:\b(?:no|nos|fig|sec|art|vol|pp?))\.$`)
)

// splitSentences splits a passage of Markdown: an item of a list is at least one sentence, a table
// or a block of code is not one.
func splitSentences(passage string) []string {
	var out []string
	var b strings.Builder
	flush := func() {
		t := strings.Join(strings.Fields(b.String()), " ")
		b.Reset()
		start := 0
		for _, at := range period.FindAllStringIndex(t, -1) {
			end := at[0] + 1
			rest := strings.TrimSpace(t[end:])
			if s := t[start:end]; !abbreviated.MatchString(s) && (!unicode.IsDigit(rune(rest[0])) || !numbered.MatchString(s)) {
				out = append(out, text.Truncate(s, 300))
				start = len(t) - len(rest)
			}
		}
		if start < len(t) {
			out = append(out, text.Truncate(t[start:], 300))
		}
	}
	fenced := false
	for line := range strings.SplitSeq(passage, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if fenced || strings.HasPrefix(line, "|") {
			continue
		}
		if item := listItem.FindString(line); item != "" || strings.TrimSpace(line) == "" {
			flush()
			line = line[len(item):]
		}
		b.WriteString(strings.TrimPrefix(line, "> "))
		b.WriteByte(' ')
	}
	flush()
	return out
}
