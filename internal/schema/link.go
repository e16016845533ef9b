package schema

// linkReferences resolves every $ref, and rejects references that lead back to their own value and
// combinations that multiply beyond the limit.
func (c *compiler) linkReferences() error {
	for _, n := range c.order {
		if n.target == "" {
			continue
		}
		if n.ref = c.nodes[n.target[1:]]; n.ref == nil {
			return newError(n.at+"/$ref", "No schema exists at %.100q.", n.target)
		}
	}
	for _, n := range c.order {
		if err := n.countSchemas(); err != nil {
			return err
		}
	}
	return nil
}

// weighing marks a node while its weight is computed: meeting it again means a cycle.
const weighing = -1

// countSchemas counts the subschemas that a value is checked against at this node, without those of
// its members and items.
func (n *node) countSchemas() error {
	if n.weight > 0 {
		return nil
	}
	n.weight = weighing
	sum := 1
	for _, other := range n.localNodes() {
		if other.weight == weighing { // only a $ref leads out of the tree
			return newError(n.at+"/$ref",
				"This reference leads back to %q without going into a member or an item, so checking a value would never end.", "#"+other.at)
		}
		if err := other.countSchemas(); err != nil {
			return err
		}
		sum += other.weight
	}
	if n.weight = sum; sum > maxWeight {
		return newError(n.at, "A value here would be checked against %d schemas, because references multiply; at most %d are allowed.",
			sum, maxWeight)
	}
	return nil
}
