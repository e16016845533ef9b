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
			not = append(not, `"`+plainWords(m[2])+`"`)
			return " "
		}
		if phrase := plainWords(m[1]); strings.TrimSpace(phrase) != "" {
			must = append(must, `"`+phrase+`"`)
		}
		return " " + m[1] + " "
	})
	return words, strings.Join(must, " "), strings.Join(not, " or ")
}

var punctuation = regexp.MustCompile(`[!-/:-@\[-` + "`" + `{-~]`)

// plainWords is the plain_words of the database.
func plainWords(s string) string { return punctuation.ReplaceAllString(s, " ") }

// plan is how a query is searched: queries and heads choose candidates, terms and weights rank them.
type plan struct {
	terms       []string  // rarest first
	weights     []float64 // the inverse document frequency of each
	whole       float64   // their sum
	queries     []string
	heads       string // for the headings
	every, some string // all terms, any term
}

// planSearch makes queries that find the best sections without reading all sections with a common
// word: those with all terms, with all but one, with two, and with one that is rare.
func planSearch(rows []db.SearchTermsRow) (p plan) {
	rows = rows[:min(maxTerms, len(rows))] // sorted by rarity
	rest := float64(rareTotal)
	var rare []string
	for _, r := range rows {
		term := quoteTerm(r.Term)
		p.terms = append(p.terms, term)
		weight := rarity(r)
		p.weights = append(p.weights, weight)
		p.whole += weight
		if rest -= estimate(r); rest >= 0 {
			rare = append(rare, term)
		}
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

// quoteTerm returns a word as a tsquery.
func quoteTerm(s string) string {
	return "'" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(s) + "'"
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
