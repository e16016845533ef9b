package schema

import "slices"

// heightsOf returns the depth of the smallest value of each schema.
func heightsOf(nodes []*node) map[*node]int {
	const endless = 1 << 20
	of := make(map[*node]int, len(nodes))
	for _, n := range nodes {
		of[n] = endless
	}
	for changed, round := true, 0; changed && round < 100; round++ {
		changed = false
		for _, n := range slices.Backward(nodes) {
			h := 0
			for _, other := range append(slices.Clone(n.allOf), n.ref) {
				if other != nil {
					h = max(h, of[other])
				}
			}
			for _, alternatives := range [][]*node{n.anyOf, n.oneOf} {
				if len(alternatives) > 0 {
					h = max(h, of[slices.MinFunc(alternatives, func(a, b *node) int { return of[a] - of[b] })])
				}
			}
			h = max(h, n.depthInside(of))
			if h = min(h, endless); h < of[n] {
				of[n], changed = h, true
			}
		}
	}
	return of
}

// depthInside returns the depth of the required members and items of a value.
func (n *node) depthInside(of map[*node]int) int {
	if n.oneOfs != nil || n.types&^(object|array) != 0 {
		return 0
	}
	h := 0
	for _, name := range n.required {
		if member := n.properties[name]; member != nil {
			h = max(h, 1+of[member])
		}
	}
	least, _ := n.limits["minItems"].(int)
	for _, item := range n.prefix[:min(least, len(n.prefix))] {
		h = max(h, 1+of[item])
	}
	if n.items != nil && least > len(n.prefix) {
		h = max(h, 1+of[n.items])
	}
	return h
}

// minHeight returns the depth of the smallest value that fits all of an option.
func (f *filler) minHeight(option []*node) int {
	h := 0
	for _, n := range option {
		if n != nil {
			h = max(h, f.heights[n])
		}
	}
	return h
}
