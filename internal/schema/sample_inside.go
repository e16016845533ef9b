package schema

import (
	"maps"
	"slices"
	"strconv"
)

// sampleObject makes a value with the required members, and with the known ones if full is set.
func (f *filler) sampleObject(nodes []*node, depth, variant int, full bool) (any, bool) {
	most, least := atMost(nodes, "maxProperties"), atLeast(nodes, "minProperties")
	members := map[string]any{}
	add := func(name string) bool {
		if _, there := members[name]; there {
			return true
		}
		value, ok := f.sampleValue(f.memberNodes(nodes, name), depth+1, variant)
		if ok {
			members[name] = value
		}
		return ok
	}
	for need := missingNames(nodes, members); len(need) > 0; need = missingNames(nodes, members) {
		for _, name := range need {
			if !add(name) {
				return nil, false
			}
		}
	}
	for i := 0; len(members) < least && i < least && !f.run.exhausted; i++ {
		for _, name := range f.candidateNames(nodes, i) {
			if len(members) < least {
				add(name)
			}
		}
	}
	if full {
		for _, n := range nodes {
			for _, name := range n.names {
				if len(members) < most {
					add(name)
				}
			}
		}
	}
	return members, len(members) >= least && len(members) <= most
}

// missingNames returns the required members that a value lacks.
func missingNames(nodes []*node, members map[string]any) []string {
	var need []string
	want := func(names []string) {
		for _, name := range names {
			if _, there := members[name]; !there && !slices.Contains(need, name) {
				need = append(need, name)
			}
		}
	}
	for _, n := range nodes {
		want(n.required)
		for _, name := range slices.Sorted(maps.Keys(n.follow)) {
			if _, there := members[name]; there {
				want(n.follow[name])
			}
		}
	}
	return need
}

// memberNodes returns the schemas that a member must fit.
func (f *filler) memberNodes(nodes []*node, name string) []*node {
	var all []*node
	for _, n := range nodes {
		known := n.properties[name]
		if known != nil {
			all = append(all, known)
		}
		for _, p := range n.patterns {
			if p.match.matches(name) {
				all, known = append(all, p.node), p.node
			}
		}
		if known == nil && n.additional != nil {
			all = append(all, n.additional)
		}
	}
	return all
}

// candidateNames returns names for members that a schema counts but does not name.
func (f *filler) candidateNames(nodes []*node, i int) []string {
	var names []string
	var words []*node
	for _, n := range nodes {
		names = append(names, n.names...)
		for _, p := range n.patterns {
			if name, ok := f.sampleMatching(p.match, i, 0, maxCount); ok {
				names = append(names, name)
			}
		}
		if n.propertyName != nil {
			words = append(words, n.propertyName)
		}
	}
	if words != nil {
		value, _ := f.sampleValue(words, 0, i)
		if name, ok := value.(string); ok {
			names = append(names, name)
		}
	}
	names = append(names, f.words[i%len(f.words)], "name"+strconv.Itoa(i+1))
	return slices.DeleteFunc(names, func(name string) bool { return !f.isValid(words, name) })
}

// sampleArray makes a value with the required number of items, and at least one if full is set.
func (f *filler) sampleArray(nodes []*node, depth, variant int, full bool) (any, bool) {
	least, most := atLeast(nodes, "minItems"), atMost(nodes, "maxItems")
	count, unique, prefix := least, 0, 0
	for _, n := range nodes {
		prefix = max(prefix, len(n.prefix))
	}
	for _, n := range nodes {
		if full {
			count = max(count, prefix, 1)
		}
		if n.contains != nil {
			count = max(count, prefix+n.minContains)
		}
		if n.unique {
			unique = 1
		}
	}
	items := []any{}
	count = max(min(count, most), least)
	for i := range count {
		var all []*node
		for _, n := range nodes {
			if i < len(n.prefix) {
				all = append(all, n.prefix[i])
			} else if n.items != nil {
				all = append(all, n.items)
			}
			if n.contains != nil && i >= count-n.minContains {
				all = append(all, n.contains)
			}
		}
		item, ok := f.sampleValue(all, depth+1, variant+i*unique)
		switch {
		case ok:
			items = append(items, item)
		case i >= least: // the member is optional
			return items, true
		default:
			return nil, false
		}
	}
	return items, true
}
