package rest

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/document"
)

// params parses a query string and collects its mistakes. A parameter must have a value: an empty
// filter would quietly match everything.
type params struct {
	request.Checks
	values url.Values
	broken bool // a part of the query string is invalid
}

// query returns the query parameters. A name that the document does not list for this operation is
// a mistake: it could be a filter with a typo.
func (r *apiRequest) query() *params {
	p := &params{}
	var err error
	if p.values, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		p.broken = true
		p.Add(fault.Violation{Param: "/query", Rule: "format", Message: "The query string cannot be parsed."})
	}
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		known := name
		if base, _, ok := pairName(name); ok {
			known = base + document.AnyKey
		}
		if !slices.Contains(r.op.Params, known) {
			p.Unknown("parameter", request.Pointer(name), name, r.op.Params)
		}
	}
	return p
}

// bare rejects query parameters, and an Accept header without JSON.
func (r *apiRequest) bare() error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	return r.query().Err()
}

// one returns the value of a parameter, "" for none.
func (p *params) one(name string) string {
	switch values := p.values[name]; {
	case len(values) == 0:
	case len(values) > 1:
		p.Add(fault.Violation{Param: "/" + name, Rule: "repeated", Message: name + " is there more than once."})
	case values[0] == "":
		p.Add(fault.Violation{Param: "/" + name, Rule: "min_length", Message: name + " is empty. Give it a value, or leave it out.", Expected: 1})
	default:
		return values[0]
	}
	return ""
}

func (p *params) limit(usual int) int {
	text := p.one("limit")
	if text == "" {
		return usual
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		p.Type("/limit", "integer")
		return usual
	}
	return p.Within("/limit", float64(n), 1, maxPage)
}

// text returns a parameter that may be any text.
func (p *params) text(name string) *string {
	s := p.one(name)
	if s == "" {
		return nil
	}
	if !utf8.ValidString(s) || strings.Contains(s, "\x00") {
		p.Add(fault.Violation{Param: "/" + name, Rule: "format", Message: name + " is not text in UTF-8."})
	}
	return &s
}

// uuid returns a parameter that is an id.
func (p *params) uuid(name string) *uuid.UUID {
	text := p.one(name)
	if text == "" {
		return nil
	}
	id := p.ID("/"+name, text)
	return &id
}

func (p *params) enum(name string, allowed ...string) string {
	s := p.one(name)
	if s == "" {
		return ""
	}
	return p.Choice("/"+name, s, allowed...)
}

// maxSearch is the maximum number of characters of a search.
const maxSearch = 200

// words returns the words of a search.
func (p *params) words(name string) string {
	s := p.text(name)
	if s == nil {
		return ""
	}
	if utf8.RuneCountInString(*s) > maxSearch {
		p.Longer("/"+name, "characters", maxSearch)
	}
	return *s
}

// pairName splits the name of a parameter such as metadata[plan].
func pairName(name string) (base, key string, ok bool) {
	base, rest, ok := strings.Cut(name, "[")
	key, closed := strings.CutSuffix(rest, "]")
	return base, key, ok && closed && key != ""
}

// pairs returns the parameters name[key] by their keys.
func (p *params) pairs(name string) map[string]string {
	pairs := make(map[string]string)
	for full := range p.values {
		base, key, ok := pairName(full)
		if !ok || base != name {
			continue
		}
		if value := p.text(full); value != nil {
			pairs[key] = *value
		}
		if !utf8.ValidString(key) || strings.Contains(key, "\x00") {
			p.Add(fault.Violation{Param: "/" + name, Rule: "format", Message: "The key of " + name + " is not text in UTF-8."})
		}
	}
	if len(pairs) > request.MaxMetadata {
		p.Add(fault.Violation{Param: "/" + name, Rule: "max_properties", Message: fmt.Sprintf("%s has more than %d pairs.", name, request.MaxMetadata),
			Expected: request.MaxMetadata})
	}
	return pairs
}

func (p *params) time(name string) *time.Time {
	text := p.one(name)
	if text == "" {
		return nil
	}
	return p.Time("/"+name, text)
}
