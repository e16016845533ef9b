package redact

// automaton finds all of its forms at once, in one step for each symbol, however many forms there
// are (Aho and Corasick). Most of its nodes have one child and are small; the few that branch have
// a row with the next node for every symbol.
type automaton struct {
	nodes   []node
	rows    [][256]int32
	longest int // symbols of the longest form
}

// node represents the symbols that lead to it: the longest suffix of the input with which a form
// begins.
type node struct {
	fail    int32 // node of the longest shorter suffix
	depth   int32 // number of symbols
	open    int32 // the same without suffixes that no symbol can make longer
	row     int32 // index in rows; 0: none, except for the root's
	child   int32 // the first child
	sibling int32 // the next child of the same parent
	by      byte  // the symbol that leads here
	want    byte  // the symbol that leads to the only child
	secret  int32 // secret with its longest form ending here; -1: none
	length  int32 // symbols of that form
}

func newAutomaton() automaton {
	return automaton{nodes: []node{{secret: -1}}, rows: make([][256]int32, 1)}
}

// addForm adds a form. The first secret with a form keeps it.
func (a *automaton) addForm(form []byte, secret int) {
	at := int32(0)
	for _, c := range form {
		next := a.nodes[at].child
		for next != 0 && a.nodes[next].by != c {
			next = a.nodes[next].sibling
		}
		if next == 0 {
			next = int32(len(a.nodes))
			a.nodes = append(a.nodes, node{by: c, depth: a.nodes[at].depth + 1, sibling: a.nodes[at].child, secret: -1})
			a.nodes[at].child, a.nodes[at].want = next, c
		}
		at = next
	}
	if n := &a.nodes[at]; at != 0 && n.secret < 0 {
		n.secret, n.length = int32(secret), n.depth
	}
	a.longest = max(a.longest, len(form))
}

// linkNodes completes the automaton: shallow nodes first, because each builds on the shallower
// ones.
func (a *automaton) linkNodes() {
	queue := []int32{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		n := &a.nodes[at]
		if n.secret < 0 {
			n.secret, n.length = a.nodes[n.fail].secret, a.nodes[n.fail].length
		}
		if n.open = n.depth; n.child == 0 {
			n.open = a.nodes[n.fail].open
		}
		branches := at == 0 || n.child != 0 && a.nodes[n.child].sibling != 0
		if branches && at != 0 {
			n.row = int32(len(a.rows))
			a.rows = append(a.rows, a.rows[0])
			for c := range 256 {
				a.rows[n.row][c] = a.step(n.fail, byte(c))
			}
		}
		for child := n.child; child != 0; child = a.nodes[child].sibling {
			c := &a.nodes[child]
			if at != 0 {
				c.fail = a.step(n.fail, c.by)
			}
			queue = append(queue, child)
		}
		if branches {
			for child := n.child; child != 0; child = a.nodes[child].sibling {
				a.rows[n.row][a.nodes[child].by] = child
			}
		}
	}
}

// step returns the node after another symbol.
func (a *automaton) step(at int32, c byte) int32 {
	for {
		n := &a.nodes[at]
		switch {
		case n.row != 0 || at == 0:
			return a.rows[n.row][c]
		case n.child != 0 && n.want == c:
			return n.child
		}
		at = n.fail
	}
}
