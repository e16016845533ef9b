package redact

// lane walks the automaton with the symbols of one view.
type lane struct {
	automaton *automaton
	reach     int
	node      int32
	count     int   // symbols so far
	starts    []int // positions of the last symbols, by count; the length is a power of two
	found     func(match)
}

// match is a part of the text that is a form of a secret.
type match struct {
	start, end int
	secret     int32
}

// advance adds a symbol.
func (l *lane) advance(s symbol) {
	if s.b != '\r' && s.b != '\n' { // forms match also with broken lines
		l.node = l.automaton.step(l.node, fold[s.b])
		l.starts[l.count&(len(l.starts)-1)] = s.start
		l.count++
		if n := &l.automaton.nodes[l.node]; n.secret >= 0 {
			l.found(match{l.symbolStart(n.length), s.end, n.secret})
		}
	}
	// Matches spread further than any form end here, or a stream of empty lines would be held back
	// for ever.
	for l.node != 0 && s.end-l.matchStart() > l.reach {
		l.node = l.automaton.nodes[l.node].fail
	}
}

// matchStart returns the position of the text that led to the node. A match must be in progress.
func (l *lane) matchStart() int { return l.symbolStart(l.automaton.nodes[l.node].depth) }

// settledLength returns the length of the text before at that no later match can reach.
func (l *lane) settledLength(at int) int {
	if open := l.automaton.nodes[l.node].open; open > 0 {
		return min(at, l.symbolStart(open))
	}
	return at
}

// symbolStart returns the position of the symbol added n symbols ago.
func (l *lane) symbolStart(n int32) int { return l.starts[(l.count-int(n))&(len(l.starts)-1)] }

// copyLane copies the state of another lane.
func (l *lane) copyLane(o *lane) {
	l.node, l.count = o.node, o.count
	for i := range int(o.automaton.nodes[o.node].depth) {
		at := (o.count - 1 - i) & (len(o.starts) - 1)
		l.starts[at] = o.starts[at]
	}
}

// isSameAs reports whether two lanes will find the same matches from here on.
func (l *lane) isSameAs(o *lane) bool {
	return l.node == o.node && (l.node == 0 || l.matchStart() == o.matchStart())
}
