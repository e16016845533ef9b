// Package search finds the passages of a few documents that answer a question. It is a leaf: it
// receives documents, returns ranked sections and stores nothing. It ranks by BM25 over stemmed
// English words and promises the same order for the same input.
package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// The usual constants of BM25: how soon a repeated term stops counting, and how much a long section
// is penalized.
const (
	saturation = 1.2
	lengthBias = 0.75
)

// headingWeight is how often a heading's terms count. A heading that contains the whole query
// doubles the resulting score.
const headingWeight = 2

// Index is a set of sections to search. It is immutable and safe for concurrent use.
type Index struct {
	sections []Section
	lengths  []float64
	mean     float64
	posts    map[string][]post
}

type post struct {
	section int
	count   float64
	heading bool // the section's heading contains the term
}

// Hit is a found section.
type Hit struct {
	Section
	Score float64
	// Coverage is the share of the query's terms that are in the section, from 0 to 1,
	// rare terms counting more than common ones. Unlike Score it can be compared
	// between two indexes.
	Coverage float64
	// Snippet is the part with most words of the query, if the search makes snippets.
	Snippet []Piece
	// Source is the rank that has the section, if the search has several.
	Source Source
	// Similarity is the cosine of the angle between the vectors of the query and of the section, if
	// the section was found by its vector.
	Similarity float64
}

// Source names a rank of a search, in words for a reader.
type Source string

// The ranks of a search.
const (
	ByWords  Source = "full text"
	ByVector Source = "vectors"
	ByBoth   Source = "both"
)

// Passage returns the text of the snippet.
func (h Hit) Passage() string {
	var b strings.Builder
	for _, p := range h.Snippet {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Piece is a part of a snippet.
type Piece struct {
	Text  string
	Match bool // the text is a word of the query
}

// New returns an index.
func New(sections []Section) *Index {
	x := &Index{sections: sections, lengths: make([]float64, len(sections)), posts: make(map[string][]post)}
	for i, s := range sections {
		counts, headed := make(map[string]float64), make(map[string]bool)
		for _, t := range Terms(s.Text) {
			counts[t]++
			x.lengths[i]++
		}
		for _, t := range Terms(s.Heading) {
			counts[t] += headingWeight
			headed[t] = true
		}
		for _, t := range Terms(s.Title) {
			counts[t]++
		}
		for t, n := range counts {
			x.posts[t] = append(x.posts[t], post{i, n, headed[t]})
		}
		x.mean += x.lengths[i] / float64(len(sections))
	}
	return x
}

// Find returns the best sections for a query, best first.
func (x *Index) Find(query string, limit int) []Hit {
	terms := Terms(query)
	slices.Sort(terms)
	terms = slices.Compact(terms)
	scores := make(map[int]*Hit)
	headed := make(map[int]float64)
	var whole float64
	for _, t := range terms {
		posts := x.posts[t]
		weight := x.termWeight(len(posts))
		whole += weight
		for _, p := range posts {
			h := scores[p.section]
			if h == nil {
				h = &Hit{Section: x.sections[p.section]}
				scores[p.section] = h
			}
			norm := 1 - lengthBias + lengthBias*x.lengths[p.section]/max(x.mean, 1)
			h.Score += weight * p.count * (saturation + 1) / (p.count + saturation*norm)
			h.Coverage += weight
			if p.heading {
				headed[p.section] += weight
			}
		}
	}
	hits := make([]Hit, 0, len(scores))
	for i, h := range scores {
		h.Coverage /= whole
		h.Score *= 1 + headed[i]/whole
		hits = append(hits, *h)
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Doc, b.Doc), cmp.Compare(a.Line, b.Line))
	})
	return hits[:min(max(limit, 0), len(hits))]
}

// termWeight returns the inverse document frequency of a term that n sections contain.
func (x *Index) termWeight(n int) float64 {
	all := float64(len(x.sections))
	return math.Log(1 + (all-float64(n)+0.5)/(float64(n)+0.5))
}
