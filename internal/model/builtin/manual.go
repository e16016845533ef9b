package builtin

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/parley-server/parley/docs"
	"github.com/parley-server/parley/internal/search"
)

// internals is the folder of the pages for contributors. They answer only questions that the other
// pages do not.
const internals = "internals/"

// manual is Parley's documentation, indexed at the first question. It excludes the index page,
// which would match every question.
var manual = sync.OnceValue(func() (m struct{ use, design *search.Index }) {
	var use, design []search.Section
	pages, _ := fs.Glob(docs.Files, "*/*.md") // only a bad pattern is an error
	clients, _ := fs.Glob(docs.Files, "guides/clients/*.md")
	for _, page := range append(pages, clients...) {
		content, err := docs.Files.ReadFile(page)
		if err != nil {
			continue
		}
		sections := search.Split("docs/"+page, string(content))
		if strings.HasPrefix(page, internals) {
			design = append(design, sections...)
		} else {
			use = append(use, sections...)
		}
	}
	m.use, m.design = search.New(use), search.New(design)
	return m
})

// consultManual answers a question from the documentation.
func consultManual(question string) found {
	hits := manual().use.Find(question, maxPassages)
	if len(hits) == 0 || hits[0].Coverage < coveredSome {
		if deep := manual().design.Find(question, maxPassages); len(deep) > 0 && (len(hits) == 0 || deep[0].Coverage > hits[0].Coverage+clearly) {
			hits = deep
		}
	}
	return findPassages(question, hits, func(h search.Hit) string {
		if h.Heading == "" || h.Heading == h.Title {
			return h.Doc
		}
		return fmt.Sprintf("%s, “%s”", h.Doc, h.Heading)
	})
}

// vocabularyOfParley are the stems that occur only in questions about Parley.
var vocabularyOfParley = search.Terms(`parley stream sse eventsource cursor endpoint api openapi curl http json
	frame idempotency directive session turn token healthz readyz scope guide ollama openai anthropic postgres postgresql
	caller_id session_id tool_use tool_result done blocking`)

func aboutParley(question string) bool {
	return slices.ContainsFunc(search.Terms(question), func(t string) bool { return slices.Contains(vocabularyOfParley, t) })
}
