package schema

import (
	"encoding/json"
	"maps"
	"slices"
)

func (r *run) checkArray(bad *findings, n *node, items []any, at *place) {
	found := 0
	for i, item := range items {
		switch {
		case bad.isFull():
			return
		case i < len(n.prefix):
			bad.add(r.checkValue(n.prefix[i], item, at.at(i), nil))
		case n.items != nil:
			bad.add(r.checkValue(n.items, item, at.at(i), nil))
		}
		if n.contains != nil && len(r.checkValue(n.contains, item, at.at(i), nil)) == 0 {
			found++
		}
	}
	if n.contains != nil && (found < n.minContains || found > n.maxContains) {
		bad.addFinding(at, "contains %d items of the kind that contains describes", found)
	}
	if n.unique {
		r.checkDistinct(bad, items, at)
	}
}

// checkDistinct compares the items by their JSON, which is canonical here: members are
// sorted, numbers have one form.
func (r *run) checkDistinct(bad *findings, items []any, at *place) {
	first := make(map[string]int, len(items))
	for i, item := range items {
		data, err := json.Marshal(item)
		if err != nil || !r.spendSteps(1+len(data)/4) {
			return
		}
		if j, twice := first[string(data)]; twice {
			bad.addFinding(at, "items should differ, %d and %d are equal", j, i)
			return
		}
		first[string(data)] = i
	}
}

func (r *run) checkObject(bad *findings, n *node, members map[string]any, at *place, seen names) {
	r.spendSteps(len(n.required))
	for _, name := range n.required {
		if _, there := members[name]; !there && !bad.isFull() {
			bad.addFinding(at, "%q is required", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if bad.isFull() || !r.spendSteps(1) {
			return
		}
		r.checkMember(bad, n, name, members[name], at, seen)
		if n.propertyName != nil && len(r.checkValue(n.propertyName, name, nil, nil)) > 0 {
			bad.addFinding(at.in(name), "this name is not allowed")
		}
		for _, other := range n.follow[name] {
			if _, there := members[other]; r.spendSteps(1) && !there {
				bad.addFinding(at, "%q is required beside %q", other, name)
			}
		}
	}
}

// checkMember checks a member against the schemas that properties, patternProperties and
// additionalProperties have for it.
func (r *run) checkMember(bad *findings, n *node, name string, value any, at *place, seen names) {
	known := false
	visit := func(n *node) {
		known = true
		seen.add(name)
		bad.add(r.checkValue(n, value, at.in(name), nil))
	}
	if n.properties[name] != nil {
		visit(n.properties[name])
	}
	for _, p := range n.patterns {
		if r.matchPattern(p.match, name) && p.match.matches(name) {
			visit(p.node)
		}
	}
	if !known && n.additional != nil {
		seen.add(name)
		r.checkUnknown(bad, n.additional, name, value, at)
	}
}

// checkUnevaluated checks the members that no schema has evaluated.
func (r *run) checkUnevaluated(bad *findings, n *node, members map[string]any, at *place, seen names) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if r.spendSteps(1) && !seen[name] && !bad.isFull() {
			r.checkUnknown(bad, n.unevaluated, name, members[name], at)
		}
	}
}

// checkUnknown checks a member without a schema of its own.
func (r *run) checkUnknown(bad *findings, n *node, name string, value any, at *place) {
	if n.never {
		bad.addFinding(at.in(name), "there is no such property")
		return
	}
	bad.add(r.checkValue(n, value, at.in(name), nil))
}
