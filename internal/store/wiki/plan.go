package wiki

import (
	"math"
	"regexp"
	"strings"

	"github.com/parley-server/parley/db"
)

const (
	maxTerms  = 8    // words of a query that count: its rarest
	rareTotal = 1000 // sections with one of the rare words of a query, by the estimate
)

// operator matches a quoted phrase, and a word after a minus.
var operator = regexp.MustCompile(`"([^"]*)"|(?:^|\s)-([\p{L}\p{N}]\S*)`)

// parseQuery splits a query into the words that rank sections, the phrases that a section must have,
// and the words that its document must not have; the last two in the syntax of websearch_to_tsquery.
func parseQuery(query string) (words, phrases, excluded string) {
	var must, not []string
	words = operator.ReplaceAllStringFunc(query, func(found string) string {
		m := operator.FindStringSubmatch(found)
		if m[2] != "" {
			not = append(not, `"`+splitRuns(plainWords(m[2]))+`"`)
			return " "
		}
		if phrase := splitRuns(plainWords(m[1])); strings.TrimSpace(phrase) != "" {
			must = append(must, `"`+phrase+`"`)
		}
		return " " + m[1] + " "
	})
	return words, strings.Join(must, " "), strings.Join(not, " or ")
}

var punctuation = regexp.MustCompile("[!-/:-@\\[-`{-~　、。〈〉《》「」『』【】〔〕・！（），．：；？［］｛｝～]")

// plainWords is the plain_words of the database.
func plainWords(s string) string { return punctuation.ReplaceAllString(s, " ") }

// isRunRune reports whether a character belongs to a run without blanks between its words: Chinese,
// Japanese and Korean. It is the class of split_runs in the database.
func isRunRune(r rune) bool {
	return r >= 0x3005 && r <= 0x3007 || r >= 0x3040 && r <= 0x30fa || r >= 0x30fc && r <= 0x30ff || r >= 0x3400 && r <= 0x4dbf ||
		r >= 0x4e00 && r <= 0x9fff || r >= 0xac00 && r <= 0xd7af || r >= 0xf900 && r <= 0xfaff || r >= 0xff66 && r <= 0xff9f ||
		r >= 0x20000 && r <= 0x2fa1f
}

// splitRuns is the split_runs of the database, for a query.
func splitRuns(s string) string {
	var b strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		before := i > 0 && isRunRune(runes[i-1])
		switch {
		case i > 0 && before != isRunRune(r):
			b.WriteByte(' ')
		case before && i+1 < len(runes) && isRunRune(runes[i+1]):
			b.WriteRune(r)
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// plan is how a query is searched: queries and heads choose candidates, terms and weights rank them.
type plan struct {
	terms       []string  // as queries, rarest first
	weights     []float64 // the inverse document frequency of each
	whole       float64   // the sum for all words of the query
	queries     []string
	heads       string   // for the headings
	every, some string   // all terms, any term
	runs        []string // parts of runs among the terms
}

// planSearch makes queries that find the best sections without reading all sections with a common
// word: those with all terms, with all but one, with two, and with one that is rare. Words that no
// section has choose no sections, but count for the coverage.
func planSearch(rows []db.SearchTermsRow) (p plan) {
	rest := float64(rareTotal)
	var rare []string
	words := 0
	for _, r := range rows { // sorted by rarity
		isRun := isRunRune([]rune(r.Term)[0])
		weight := rarity(r)
		if r.Held == 0 && r.Sections < sampledSections {
			p.whole += weight
			continue
		}
		if words += 2; isRun {
			words-- // a word of a run is about two pairs of characters
			p.runs = append(p.runs, r.Term)
		}
		if words > 2*maxTerms {
			break
		}
		p.terms = append(p.terms, r.Query)
		p.weights = append(p.weights, weight)
		p.whole += weight
		if rest -= estimate(r); rest >= 0 {
			rare = append(rare, r.Query)
		}
	}
	if len(p.terms) == 0 {
		return p
	}
	p.every, p.some = strings.Join(p.terms, " & "), strings.Join(p.terms, " | ")
	loose := append(combine(p.terms, min(2, len(p.terms))), rare...)
	p.heads = strings.Join(loose, " | ")
	p.queries = append(p.queries, p.every)
	if len(p.terms) > 1 {
		p.queries = append(p.queries, strings.Join(combine(p.terms, len(p.terms)-1), " | "))
	}
	if len(p.terms) > 3 {
		p.queries = append(p.queries, strings.Join(combine(p.terms, 2), " | "))
	}
	if len(rare) > 0 {
		p.queries = append(p.queries, strings.Join(rare, " | "))
	}
	return p
}

// rarity is the inverse document frequency of a term in the sample.
func rarity(r db.SearchTermsRow) float64 {
	return math.Log(1 + (float64(r.Sections-r.Held)+0.5)/(float64(r.Held)+0.5))
}

// estimate is the number of sections with a term: exact if all are in the sample. The values of
// sample are uniform below 1<<31, so that the greatest of the least ones shows how many there are.
func estimate(r db.SearchTermsRow) float64 {
	if r.Sections < sampledSections {
		return float64(r.Held)
	}
	return (float64(r.Held) + 0.5) * (1 << 31) / float64(max(r.Reach, 1))
}

// combine returns the conjunctions of n of the terms. n is 1, 2, or all but one.
func combine(terms []string, n int) (list []string) {
	switch {
	case n >= len(terms):
		return []string{strings.Join(terms, " & ")}
	case n == 1:
		return append(list, terms...)
	case n == 2:
		for i, a := range terms {
			for _, b := range terms[i+1:] {
				list = append(list, a+" & "+b)
			}
		}
		return list
	}
	for i := range terms {
		others := append(append([]string{}, terms[:i]...), terms[i+1:]...)
		list = append(list, strings.Join(others, " & "))
	}
	return list
}
