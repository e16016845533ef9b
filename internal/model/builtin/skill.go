package builtin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/search"
)

// skill is a message that carries a skill: instructions, then the inputs as JSON. The values are
// confidential, so only the names of the inputs are kept: no text, call or memory of the guide can
// repeat a value.
type skill struct {
	body   string
	inputs []string
}

const (
	inputsBegin = "\n<inputs>\n"
	inputsEnd   = "\n</inputs>"
	inputsIntro = "The inputs of this skill follow"
)

// skillIn parses a skill's message. No value contains a <, so the last block is the one of the
// skill.
func skillIn(text string) (s skill, ok bool) {
	at := strings.LastIndex(text, inputsBegin)
	if at < 0 {
		return s, false
	}
	block, _, ok := strings.Cut(text[at+len(inputsBegin):], inputsEnd)
	var values map[string]json.RawMessage
	if !ok || json.Unmarshal([]byte(block), &values) != nil {
		return s, false
	}
	s.body = text[:at]
	if i := strings.LastIndex(s.body, "\n"+inputsIntro); i >= 0 {
		s.body = s.body[:i]
	}
	s.inputs = slices.Sorted(maps.Keys(values))
	return s, true
}

// withoutInputs returns the messages with the inputs of their skills removed.
func withoutInputs(messages []model.Message) []model.Message {
	messages = slices.Clone(messages)
	for i, m := range messages {
		if s, ok := skillIn(m.Text); ok && m.Role == model.User {
			messages[i].Text = s.body
		}
	}
	return messages
}

// points is how many sentences of each page an answer to a skill contains.
const points = 3

// runSkill does the mechanical part of a skill: it reads the wiki pages that the instructions name,
// and summarizes them and the instructions.
func (c conversation) runSkill(s skill) reply {
	if pages := pagesNamed(s.body); c.step == 0 && len(pages) > 0 && c.offered["wiki_read"] {
		var calls []event.ToolCall
		for _, page := range pages {
			calls = append(calls, askFor("wiki_read", map[string]string{"page": page}))
		}
		return reply{calls: calls}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n", cmp.Or(search.Title(s.body), "This skill"))
	read := 0
	for _, r := range c.results {
		if said := summarizePage(r.output); r.call.Tool == "wiki_read" && !r.failed && len(said) > 0 {
			fmt.Fprintf(&b, "\nFrom the wiki page %s:\n\n- %s\n", argumentOf(r.call, "page", ""),
				strings.Join(said[:min(len(said), points)], "\n- "))
			read++
		}
	}
	did := "read the pages that this skill names"
	if read == 0 {
		did = "listed what this skill asks for"
		fmt.Fprintf(&b, "\n- %s\n", strings.Join(summarizePage(s.body), "\n- "))
	}
	with := "."
	if len(s.inputs) > 0 {
		with = " with its inputs: " + strings.Join(s.inputs, ", ") + "."
	}
	fmt.Fprintf(&b, "\nI am the built-in guide and have %s. To carry it out needs a real language model, which gets the whole text%s %s",
		did, with, realModel)
	return sayText(b.String())
}

var (
	wikiPage   = regexp.MustCompile(`(?i)\bwiki pages?\b`)
	backticked = regexp.MustCompile("`([^`]{1,255})`")
)

// pagesNamed finds "the wiki page `onboarding`", and more in the same line.
func pagesNamed(body string) []string {
	var pages []string
	for line := range strings.SplitSeq(body, "\n") {
		at := wikiPage.FindStringIndex(line)
		if at == nil {
			continue
		}
		for _, m := range backticked.FindAllStringSubmatch(line[at[1]:], -1) {
			if len(pages) < maxRead && !slices.Contains(pages, m[1]) {
				pages = append(pages, m[1])
			}
		}
	}
	return pages
}
