package schema

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// rich is the depth down to which a sample has optional members; below, it has only required ones.
const rich = 3

// Sample returns a value that fits, always the same one for the same words: texts consist of these
// words if the schema allows it. It returns false if it found none, and then perhaps none exists.
func (s *Schema) Sample(words string) (json.RawMessage, bool) {
	f := &filler{words: strings.Fields(words), run: run{steps: maxSteps}, heights: heightsOf(s.nodes)}
	if len(f.words) == 0 {
		f.words = []string{"text"}
	}
	value, ok := f.sampleValue([]*node{s.root}, 0, 0)
	if !ok {
		return nil, false
	}
	data, err := json.Marshal(value)
	return data, err == nil
}

// filler searches for a value while its run has steps left. The same goal with another variant may
// find another value.
type filler struct {
	run     run
	words   []string
	heights map[*node]int
}

// goal is the set of schemas that a value has to fit: all of nodes, and an option of each choice.
type goal struct {
	nodes   []*node
	choices [][][]*node
}

// with adds schemas to a goal, and the schemas they refer to.
func (g goal) with(more ...*node) goal {
	for _, n := range more {
		if n == nil || slices.Contains(g.nodes, n) {
			continue
		}
		g.nodes = append(g.nodes[:len(g.nodes):len(g.nodes)], n)
		g = g.with(n.ref).with(n.allOf...)
		for _, alternatives := range [][]*node{n.anyOf, n.oneOf} {
			var options [][]*node
			for _, a := range alternatives {
				options = append(options, []*node{a})
			}
			if options != nil {
				g.choices = append(g.choices[:len(g.choices):len(g.choices)], options)
			}
		}
		if n.cond != nil {
			g.choices = append(g.choices[:len(g.choices):len(g.choices)], [][]*node{{n.cond, n.then}, {n.otherwise}})
		}
	}
	return g
}

// sampleValue finds a value that fits all of nodes.
func (f *filler) sampleValue(nodes []*node, depth, variant int) (any, bool) {
	return f.searchGoal(goal{}.with(nodes...), depth, variant)
}

func (f *filler) searchGoal(g goal, depth, variant int) (any, bool) {
	const steps = 50
	if !f.run.spendSteps(steps) || depth > MaxDepth {
		return nil, false
	}
	if len(g.choices) == 0 {
		return f.findConcrete(g.nodes, depth, variant)
	}
	options := slices.Clone(g.choices[0])
	g.choices = g.choices[1:]
	if depth >= rich {
		slices.SortStableFunc(options, func(a, b []*node) int { return f.minHeight(a) - f.minHeight(b) })
	}
	for _, option := range options {
		if value, ok := f.searchGoal(g.with(option...), depth, variant); ok {
			return value, true
		}
	}
	return nil, false
}

// findConcrete finds a value when only the value itself is left to choose.
func (f *filler) findConcrete(nodes []*node, depth, variant int) (any, bool) {
	allowed := kinds(math.MaxUint8)
	for _, n := range nodes {
		if n.oneOfs != nil {
			return f.sampleListed(nodes, n.oneOfs[0], variant)
		}
		if types := n.types; types != 0 {
			if types&number != 0 {
				types |= integer
			}
			allowed &= types
		}
	}
	for _, kind := range likelyTypes(nodes) {
		if allowed&kind == 0 {
			continue
		}
		for try := range 4 {
			if value, ok := f.buildValue(kind, nodes, depth, variant+try, try == 0 && depth < rich); ok && f.isValid(nodes, value) {
				return value, true
			}
			if f.run.exhausted {
				return nil, false
			}
		}
	}
	return nil, false
}

// sampleListed finds one of the values that an enum lists.
func (f *filler) sampleListed(nodes []*node, values []any, variant int) (any, bool) {
	for i := range values {
		if value := values[(i+variant)%len(values)]; f.isValid(nodes, value) {
			return value, true
		}
	}
	return nil, false
}

// isValid reports whether a value fits all of nodes, including the keywords that are ignored while
// it is made: not, oneOf, propertyNames.
func (f *filler) isValid(nodes []*node, value any) bool {
	for _, n := range nodes {
		if len(f.run.checkValue(n, value, nil, nil)) > 0 || f.run.exhausted {
			return false
		}
	}
	return true
}

// likelyTypes returns the order in which types are tried: those of the schema's keywords first.
func likelyTypes(nodes []*node) []kinds {
	var first kinds
	for _, n := range nodes {
		switch {
		case n.properties != nil || n.patterns != nil || n.additional != nil || n.required != nil || n.limits["minProperties"] != nil:
			first |= object
		case n.prefix != nil || n.items != nil || n.contains != nil || n.limits["minItems"] != nil:
			first |= array
		case n.limits["minimum"] != nil || n.limits["maximum"] != nil || n.multiple != 0 ||
			n.limits["exclusiveMinimum"] != nil || n.limits["exclusiveMaximum"] != nil:
			first |= number
		}
	}
	order := []kinds{object, array, str, integer, number, boolean, null}
	if first == 0 {
		order = []kinds{str, integer, number, object, array, boolean, null}
	}
	slices.SortStableFunc(order, func(a, b kinds) int { return int(first&b) - int(first&a) })
	return order
}

func (f *filler) buildValue(kind kinds, nodes []*node, depth, variant int, full bool) (any, bool) {
	switch kind {
	case object:
		return f.sampleObject(nodes, depth, variant, full)
	case array:
		return f.sampleArray(nodes, depth, variant, full)
	case str:
		return f.sampleText(nodes, variant)
	case integer, number:
		return numberBetween(nodes, kind == integer, variant)
	case boolean:
		return variant%2 == 0, true
	default:
		return nil, true
	}
}

// boundsOf returns the strictest value of a limit: the largest minimum, the smallest maximum.
func boundsOf(nodes []*node, name string, strictest func(a, b int) int, otherwise int) int {
	found, there := otherwise, false
	for _, n := range nodes {
		if count, ok := n.limits[name].(int); ok {
			if there {
				count = strictest(found, count)
			}
			found, there = count, true
		}
	}
	return found
}

func atLeast(nodes []*node, name string) int {
	return boundsOf(nodes, name, func(a, b int) int { return max(a, b) }, 0)
}

func atMost(nodes []*node, name string) int {
	return boundsOf(nodes, name, func(a, b int) int { return min(a, b) }, maxCount)
}
