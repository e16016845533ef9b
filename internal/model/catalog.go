package model

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// DefaultWindow is the context window, in tokens, of a model whose window is not known.
const DefaultWindow = 128_000

// Rates are a provider's prices for tokens, in US dollars per million.
type Rates struct {
	Input       float64
	CachedInput float64 // input that the provider read from its cache
	Output      float64
	CacheWrite  float64 // input that the provider wrote to its cache; 0: as other input
}

// Entry describes a model.
type Entry struct {
	Name      string // full name; PROVIDER/* describes every other model of a provider
	Rates     *Rates // nil: the price is not known
	Window    int    // tokens of the context; 0: not known
	MaxOutput int    // tokens of a reply; 0: not known
	Source    string // where the entry comes from
	Date      string // since when it is valid, as 2026-03 or 2026-03-31; "": not known
}

// Catalog describes models: their prices, context windows and limits. It never changes, and nil is
// the catalog of this release.
type Catalog struct{ entries map[string]Entry }

// NewCatalog returns the catalog of this release with own entries in place of those of the same
// name. An own entry that lacks a price or a limit has that of the entry that it replaces.
func NewCatalog(own []Entry) *Catalog {
	c := &Catalog{maps.Clone(shipped.entries)}
	for _, e := range own {
		was, _ := shipped.Find(e.Name)
		e.Rates, e.Window, e.MaxOutput = cmp.Or(e.Rates, was.Rates), cmp.Or(e.Window, was.Window), cmp.Or(e.MaxOutput, was.MaxOutput)
		c.entries[e.Name] = e
	}
	return c
}

// dated matches the suffix of one release of a model: gpt-4o-2024-08-06,
// claude-sonnet-4-5-20250929, claude-3-5-haiku-latest.
var dated = regexp.MustCompile(`-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$`)

// Find returns the entry of a model by its full name. A dated release without its own entry has that
// of its model, and a model without one that of PROVIDER/*.
func (c *Catalog) Find(name string) (Entry, bool) {
	if c == nil {
		c = shipped
	}
	provider, _, _ := strings.Cut(name, "/")
	for _, key := range []string{name, dated.ReplaceAllString(name, ""), provider + "/*"} {
		if e, ok := c.entries[key]; ok {
			return e, true
		}
	}
	return Entry{}, false
}

// Entries returns all entries by name.
func (c *Catalog) Entries() []Entry {
	if c == nil {
		c = shipped
	}
	return slices.SortedFunc(maps.Values(c.entries), func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
}

// Price returns the price of a model; ok is false if it is not known.
func (c *Catalog) Price(name string) (r Rates, ok bool) {
	e, _ := c.Find(name)
	if e.Rates == nil {
		return r, false
	}
	return *e.Rates, true
}

// Window returns the tokens that the context of a model can have.
func (c *Catalog) Window(name string) int {
	e, _ := c.Find(name)
	return cmp.Or(e.Window, DefaultWindow)
}

// MaxOutput returns the tokens that a reply of a model can have, or 0 if that is not known.
func (c *Catalog) MaxOutput(name string) int {
	e, _ := c.Find(name)
	return e.MaxOutput
}

// Cost returns the price of one request in US dollars, or nil for a model without a known price.
func (c *Catalog) Cost(name string, u Usage) *float64 {
	r, ok := c.Price(name)
	if !ok {
		return nil
	}
	cached := min(u.CachedTokens, u.InputTokens)
	written := min(u.CacheWriteTokens, u.InputTokens-cached)
	fresh := u.InputTokens - cached - written
	return new((float64(fresh)*r.Input + float64(cached)*r.CachedInput + float64(written)*cmp.Or(r.CacheWrite, r.Input) +
		float64(u.OutputTokens)*r.Output) / 1e6)
}
