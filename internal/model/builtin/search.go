package builtin

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/text"
)

// The share of a question's words that a passage must contain. If the documentation covers a
// question about Parley well, it is answered at once; otherwise the workspace's own knowledge is
// searched first, and wins unless the documentation is clearly better and covers half of the question.
const (
	coveredWell = 0.75
	coveredSome = 0.5
	coveredBit  = 0.34
	clearly     = 0.15
)

const (
	maxQuestion = 500 // characters of a question that are searched for
	maxTerms    = 8   // words of a question in a pattern
	maxRead     = 3   // documents read for one answer
	maxPassages = 2
	worthRead   = 0.6 // fraction of the best score: another document worth reading
	worthShown  = 0.8 // fraction of the best score: another passage worth showing
)

// searchDocuments answers a question from the workspace's documents or the documentation.
func (c conversation) searchDocuments() reply {
	manual := consultManual(c.question)
	attached := c.fromAttachments()
	switch {
	case attached.covered >= coveredSome && c.step == 0:
		return sayText(attached.text)
	case len(c.attachments) > 0 && attachmentAsked.MatchString(c.question) && c.step == 0:
		return c.summariseAttachments()
	case len(c.unread) > 0 && attachmentAsked.MatchString(c.question) && c.step == 0:
		return reply{} // the sentences about them
	case c.step == 0:
		if !c.offered["search"] || patternOf(c.question) == "" || manual.covered >= coveredWell && aboutParley(c.question) {
			return manual.orElse(coveredBit, c.nothingFound())
		}
		return useTool("search", map[string]string{"query": text.Prefix(c.question, maxQuestion)})
	case c.step == 1:
		found, _ := c.findResult("search")
		calls := c.toRead(found)
		if len(calls) == 0 {
			return manual.orElse(coveredBit, c.nothingFound())
		}
		return reply{calls: calls}
	}
	own := c.fromDocuments()
	if own.covered == 0 || manual.covered >= coveredSome && manual.covered > own.covered+clearly {
		return manual.orElse(coveredBit, own.orElse(coveredBit, c.nothingFound()))
	}
	return own.orElse(0, c.nothingFound())
}

// found is an answer that consists of passages.
type found struct {
	text    string
	covered float64 // the share of the question that it covers
}

// orElse returns the answer, or another reply if the answer covers too little.
func (f found) orElse(least float64, other reply) reply {
	if f.text == "" || f.covered < least {
		return other
	}
	return sayText(f.text)
}

// findPassages makes an answer of the best hits. source names the document of a hit.
func findPassages(question string, hits []search.Hit, source func(search.Hit) string) found {
	var f found
	var b strings.Builder
	for i, h := range hits {
		if i > 0 && (i == maxPassages || h.Score < hits[0].Score*worthShown) {
			break
		}
		if i == 0 {
			f.covered = h.Coverage
			if h.Coverage < coveredSome {
				b.WriteString("The closest that I found:\n\n")
			}
		} else {
			b.WriteString("\n\n")
		}
		if h.Heading != "" {
			fmt.Fprintf(&b, "**%s**\n\n", h.Heading)
		}
		fmt.Fprintf(&b, "%s\n\nFrom %s.", strings.TrimSpace(focusOf(h.Section, question)), source(h))
	}
	f.text = b.String()
	return f
}

// patternOf makes a regular expression of a question's subject.
func patternOf(question string) string {
	var stems []string
	for _, t := range search.Terms(question) {
		t = strings.TrimSuffix(t, "y") // policy, policies
		if len(t) < 2 {
			continue
		}
		stem := regexp.QuoteMeta(text.Prefix(t, 40))
		if t[0] < utf8.RuneSelf { // \b knows the letters of ASCII alone
			stem = `\b` + stem
		}
		if !slices.Contains(stems, stem) {
			stems = append(stems, stem)
		}
	}
	if len(stems) == 0 {
		return ""
	}
	return `(?i)(` + strings.Join(stems[:min(len(stems), maxTerms)], "|") + ")"
}

var foundLine = regexp.MustCompile(`^(.+?):(\d+): (.*)$`)

// toRead chooses the documents in a result of search that cover most of the question, and makes the
// calls that read them.
func (c conversation) toRead(r result) []event.ToolCall {
	pattern, err := regexp.Compile(patternOf(c.question))
	if r.failed || err != nil {
		return nil
	}
	said := make(map[string]map[string]bool) // the words that each document contains
	holds := make(map[string]float64)        // the number of documents that contain a word
	for line := range strings.SplitSeq(r.output, "\n") {
		m := foundLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		doc := m[1]
		if said[doc] == nil {
			said[doc] = make(map[string]bool)
		}
		for _, w := range pattern.FindAllString(m[3]+" "+path.Base(doc), -1) {
			if w = strings.ToLower(w); !said[doc][w] {
				said[doc][w] = true
				holds[w]++
			}
		}
	}
	type candidate struct {
		doc   string
		score float64
	}
	var docs []candidate
	for doc, saidWords := range said {
		d := candidate{doc: doc}
		for _, w := range slices.Sorted(maps.Keys(saidWords)) {
			d.score += math.Log(1 + float64(len(said))/holds[w])
		}
		if pattern.MatchString(path.Base(doc)) {
			d.score *= 1.5
		}
		docs = append(docs, d)
	}
	slices.SortFunc(docs, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.doc, b.doc))
	})
	var calls []event.ToolCall
	for _, d := range docs {
		if len(calls) == maxRead || d.score < docs[0].score*worthRead {
			break
		}
		page, isPage := strings.CutPrefix(d.doc, "wiki/")
		page, hasSuffix := strings.CutSuffix(page, ".md")
		switch {
		case isPage && hasSuffix && c.offered["wiki_read"]:
			calls = append(calls, askFor("wiki_read", map[string]string{"page": page}))
		case c.offered["read"]:
			calls = append(calls, askFor("read", map[string]string{"path": d.doc}))
		}
	}
	return calls
}

// fromDocuments answers from the documents that were read.
func (c conversation) fromDocuments() found {
	var sections []search.Section
	for _, r := range c.results {
		switch {
		case r.failed:
		case r.call.Tool == "wiki_read":
			sections = append(sections, search.Split("the wiki page "+argumentOf(r.call, "page", ""), r.output)...)
		case r.call.Tool == "read":
			sections = append(sections, search.Split(argumentOf(r.call, "path", ""), r.output)...)
		}
	}
	return findPassages(c.question, search.New(sections).Find(c.question, maxPassages), func(h search.Hit) string { return h.Doc })
}

// nothingFound is the answer if no source covers the question: what is nearest in the attachments, or
// else that there is nothing.
func (c conversation) nothingFound() reply {
	if attached := c.fromAttachments(); attached.text != "" {
		return sayText(attached.text)
	}
	where := "Parley's documentation"
	if c.offered["search"] {
		where = "this workspace's knowledge or in Parley's documentation"
	}
	return sayText("I found nothing about that in " + where +
		". I am the built-in guide and only look things up; if this needs thinking, it needs a real language model. " + realModel)
}
