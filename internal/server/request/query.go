package request

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// AnyKey follows the name of a parameter that has keys, such as metadata[plan], in a list of names.
const AnyKey = "[key]"

const (
	// MaxPage is the maximum number of items in a page.
	MaxPage = 100

	maxSearch = 200 // characters
)

// Query is a parsed query string. Its methods return the zero value for an absent parameter, and
// add violations to the Checks. A parameter must have a value: an empty filter would quietly match
// everything.
type Query struct {
	*Checks
	Values url.Values
	Broken bool // a part of the query string is invalid
}

// ParseQuery parses a query string. A name that is not known is a mistake: it could be a filter
// with a typo.
func ParseQuery(c *Checks, query string, known []string) *Query {
	q := &Query{Checks: c}
	var err error
	if q.Values, err = url.ParseQuery(query); err != nil {
		q.Broken = true
		c.addViolation("/query", "format", "The query string cannot be parsed.", nil)
	}
	for _, name := range slices.Sorted(maps.Keys(q.Values)) {
		listed := name
		if base, _, ok := splitPair(name); ok {
			listed = base + AnyKey
		}
		if !slices.Contains(known, listed) {
			c.Unknown("parameter", Pointer(name), name, known)
		}
	}
	return q
}

// One returns the value of a parameter unchanged.
func (q *Query) One(name string) string {
	switch values := q.Values[name]; {
	case len(values) == 0:
	case len(values) > 1:
		q.addViolation("/"+name, "repeated", name+" is there more than once.", nil)
	case values[0] == "":
		q.addViolation("/"+name, "min_length", name+" is empty. Give it a value, or leave it out.", 1)
	default:
		return values[0]
	}
	return ""
}

// Cursor returns the place in a list where a page begins.
func (q *Query) Cursor() string { return q.One("cursor") }

// Limit returns the maximum number of items of a page.
func (q *Query) Limit(usual int) int { return q.LimitTo(usual, MaxPage) }

// LimitTo is Limit for a list with another maximum.
func (q *Query) LimitTo(usual, most int) int {
	s := q.One("limit")
	if s == "" {
		return usual
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		q.Type("/limit", "integer")
		return usual
	}
	return q.Within("/limit", float64(n), 1, most)
}

// Number returns a number from 1, or 0 if it is absent.
func (q *Query) Number(name string) int {
	s := q.One(name)
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		q.Type("/"+name, "integer")
		return 0
	}
	return q.Within("/"+name, float64(n), 1, math.MaxInt32)
}

// OptionalText returns a parameter that may be any text, nil if it is absent.
func (q *Query) OptionalText(name string) *string {
	s := q.One(name)
	if s == "" {
		return nil
	}
	q.checkEncoding("/"+name, name, s)
	return &s
}

// Text returns a parameter that may be any text.
func (q *Query) Text(name string) string {
	if s := q.OptionalText(name); s != nil {
		return *s
	}
	return ""
}

// checkEncoding reports a text that cannot be stored.
func (q *Query) checkEncoding(param, name, s string) {
	if !utf8.ValidString(s) || strings.Contains(s, "\x00") {
		q.addViolation(param, "format", name+" is not text in UTF-8.", nil)
	}
}

// ID returns a parameter that is an id.
func (q *Query) ID(name string) *uuid.UUID {
	s := q.One(name)
	if s == "" {
		return nil
	}
	return new(q.Checks.ID("/"+name, s))
}

// Enum returns a parameter that is one of the allowed words.
func (q *Query) Enum(name string, allowed ...string) string {
	s := q.One(name)
	if s == "" {
		return ""
	}
	return q.Choice("/"+name, s, allowed...)
}

// Time returns a parameter that is a time.
func (q *Query) Time(name string) *time.Time {
	s := q.One(name)
	if s == "" {
		return nil
	}
	return q.Checks.Time("/"+name, s)
}

// Search returns the words of a search.
func (q *Query) Search(name string) string {
	s := q.Text(name)
	if utf8.RuneCountInString(s) > maxSearch {
		q.Longer("/"+name, "characters", maxSearch)
	}
	return s
}

// Pairs returns the parameters name[key] by their keys.
func (q *Query) Pairs(name string) map[string]string {
	pairs := make(map[string]string)
	for full := range q.Values {
		base, key, ok := splitPair(full)
		if !ok || base != name {
			continue
		}
		if value := q.OptionalText(full); value != nil {
			pairs[key] = *value
		}
		q.checkEncoding("/"+name, "The key of "+name, key)
	}
	if len(pairs) > MaxMetadata {
		q.addViolation("/"+name, "max_properties", fmt.Sprintf("%s has more than %d pairs.", name, MaxMetadata), MaxMetadata)
	}
	return pairs
}

// splitPair splits the name of a parameter such as metadata[plan].
func splitPair(name string) (base, key string, ok bool) {
	base, rest, ok := strings.Cut(name, "[")
	key, closed := strings.CutSuffix(rest, "]")
	return base, key, ok && closed && key != ""
}
