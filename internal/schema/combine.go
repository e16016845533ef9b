package schema

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// checkCombined checks the subschemas that apply to the same value.
func (r *run) checkCombined(bad *findings, n *node, value any, at *place, seen names) {
	also := func(other *node) {
		if other != nil && !bad.isFull() {
			bad.add(r.checkValue(other, value, at, seen))
		}
	}
	also(n.ref)
	for _, other := range n.allOf {
		also(other)
	}
	if members, ok := value.(map[string]any); ok {
		for _, name := range slices.Sorted(maps.Keys(n.dependent)) {
			if _, there := members[name]; there {
				also(n.dependent[name])
			}
		}
	}
	if n.cond != nil {
		if len(r.checkBranch(n.cond, value, at, seen)) == 0 {
			also(n.then)
		} else {
			also(n.otherwise)
		}
	}
	if n.not != nil && len(r.checkValue(n.not, value, at, nil)) == 0 {
		bad.addFinding(at, "fits what not forbids")
	}
	r.checkAlternatives(bad, n.anyOf, false, value, at, seen)
	r.checkAlternatives(bad, n.oneOf, true, value, at, seen)
}

// checkBranch checks a subschema that need not fit. The members that it evaluated count only if
// it fits.
func (r *run) checkBranch(n *node, value any, at *place, seen names) []finding {
	var own names
	if seen != nil {
		own = names{}
	}
	bad := r.checkValue(n, value, at, own)
	if len(bad) == 0 {
		for name := range own {
			seen.add(name)
		}
	}
	return bad
}

// checkAlternatives checks anyOf and oneOf. If only one alternative can be
// meant, it reports that one's violations.
func (r *run) checkAlternatives(bad *findings, nodes []*node, single bool, value any, at *place, seen names) {
	fitting, meant := 0, 0
	var chosen []finding
	for _, n := range nodes {
		found := r.checkBranch(n, value, at, seen)
		switch {
		case len(found) == 0:
			if fitting++; !single && seen == nil {
				return
			}
		case fitting == 0 && !r.isForeign(n, value):
			meant++
			chosen = found
		}
	}
	switch {
	case len(nodes) == 0 || fitting == 1 || fitting > 1 && !single:
	case fitting > 1:
		bad.addFinding(at, "fits %d of the %d alternatives, exactly one is needed", fitting, len(nodes))
	case meant == 1:
		bad.add(chosen)
	default:
		bad.addFinding(at, "fits none of the %d alternatives", len(nodes))
	}
}

// isForeign reports whether a schema is for other values: of another type, or with another constant
// for the kind of object, as in {"kind": {"const": "cat"}}.
func (r *run) isForeign(n *node, value any) bool {
	if !r.spendSteps(1+len(n.names)) || n.types != 0 && n.types&kindOf(value) == 0 || n.ref != nil && r.isForeign(n.ref, value) {
		return true
	}
	members, _ := value.(map[string]any)
	return slices.ContainsFunc(n.names, func(name string) bool {
		member, there := members[name]
		return there && !n.properties[name].isListed(member)
	})
}

// isListed reports whether a value is listed by enum and const.
func (n *node) isListed(value any) bool {
	for _, values := range n.oneOfs {
		if !slices.ContainsFunc(values, func(v any) bool { return reflect.DeepEqual(v, value) }) {
			return false
		}
	}
	return true
}

// describeChoice lists the values of enum and const.
func describeChoice(lists [][]any) string {
	var words []string
	for _, values := range lists {
		for _, v := range values[:min(len(values), 20)] {
			if data, err := json.Marshal(v); err == nil {
				words = append(words, string(data))
			}
		}
	}
	return strings.Join(words, " or ")
}
