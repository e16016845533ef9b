package redact

import (
	"cmp"
	"math/bits"
	"slices"
)

// scanner finds the secrets in one text, piece by piece. It reads the text unchanged, and from an
// escape on also in that escape's dialect, until both readings are the same again.
type scanner struct {
	plain   lane
	inert   *[256]bool // from the Redactor
	escaped []escaped
	at      int     // bytes of the text so far
	actives int     // number of active lanes in escaped
	found   []match // in order, without overlaps
}

type escaped struct {
	view
	lane
	active bool
}

// special are the bytes that begin an escape.
var special = func() (s [256]bool) {
	for _, d := range dialects {
		s[d.mark] = true
	}
	return s
}()

func newScanner(r *Redactor) *scanner {
	sc := &scanner{inert: &r.inert}
	size := 1 << bits.Len(uint(r.automaton.longest))
	newLane := func() lane {
		return lane{automaton: &r.automaton, reach: r.reach, starts: make([]int, size), found: sc.addMatch}
	}
	sc.plain, sc.escaped = newLane(), make([]escaped, len(r.dialects))
	for i := range sc.escaped {
		e := &sc.escaped[i]
		e.lane = newLane()
		e.view = view{dialect: &r.dialects[i], emit: e.lane.advance}
	}
	return sc
}

// scan reads the next piece.
func (sc *scanner) scan(text []byte) {
	for i := 0; i < len(text); i++ {
		if sc.plain.node == 0 && sc.actives == 0 {
			from := i
			for i < len(text) && sc.inert[text[i]] && !special[text[i]] {
				i++
			}
			if sc.at += i - from; i == len(text) {
				return
			}
		}
		c := text[i]
		if special[c] && sc.plain.node == 0 && sc.isRepeatedMark(c) {
			from := i
			for i < len(text) && text[i] == c {
				i++
			}
			sc.at += i - from
			sc.moveEscape(c)
			i--
			continue
		}
		s := symbol{c, sc.at, sc.at + 1}
		sc.at++
		if sc.actives > 0 || special[c] {
			sc.readViews(s)
			continue
		}
		sc.plain.advance(s)
	}
}

// isRepeatedMark reports whether a repeated mark changes only the place where an escape may begin:
// no form begins with it, and no match or escape is in progress.
func (sc *scanner) isRepeatedMark(mark byte) bool {
	if sc.actives == 0 || !sc.inert[mark] {
		return false
	}
	for i := range sc.escaped {
		e := &sc.escaped[i]
		if e.active && (e.drop || e.lane.node != 0 || len(e.pending) != 1 || e.pending[0].b != mark) {
			return false
		}
	}
	return true
}

// moveEscape moves the beginning of an escape to the last mark.
func (sc *scanner) moveEscape(mark byte) {
	for i := range sc.escaped {
		if e := &sc.escaped[i]; e.active {
			e.pending[0] = symbol{mark, sc.at - 1, sc.at}
		}
	}
}

// readViews reads a byte in every reading that may differ.
func (sc *scanner) readViews(s symbol) {
	for i := range sc.escaped {
		e := &sc.escaped[i]
		if !e.active && s.b == e.mark {
			e.active = true
			sc.actives++
			e.lane.copyLane(&sc.plain)
		}
		if e.active {
			e.feed(s)
		}
	}
	sc.plain.advance(s)
	for i := range sc.escaped {
		e := &sc.escaped[i]
		if e.active && len(e.pending) == 0 && e.lane.isSameAs(&sc.plain) {
			e.active = false
			sc.actives--
		}
	}
}

// finish handles the end of the text.
func (sc *scanner) finish() {
	for i := range sc.escaped {
		if sc.escaped[i].active {
			sc.escaped[i].finish()
		}
	}
}

// settledLength returns the length of the text that no later match can reach.
func (sc *scanner) settledLength() int {
	at := sc.plain.settledLength(sc.at)
	for i := range sc.escaped {
		e := &sc.escaped[i]
		if !e.active {
			continue
		}
		at = e.lane.settledLength(at)
		if len(e.pending) > 0 {
			at = min(at, e.pending[0].start)
		}
	}
	return at
}

// addMatch adds a match. Overlapping matches become one, under the name of the first of them, and
// of the longest at that place.
func (sc *scanner) addMatch(m match) {
	from := len(sc.found)
	for from > 0 && sc.found[from-1].end > m.start {
		from--
	}
	to := from
	for to < len(sc.found) && sc.found[to].start < m.end {
		m = union(m, sc.found[to])
		to++
	}
	sc.found = slices.Replace(sc.found, from, to, m)
}

// union covers two matches.
func union(a, b match) match {
	first := a
	if cmp.Or(cmp.Compare(b.start, a.start), cmp.Compare(a.end, b.end), cmp.Compare(b.secret, a.secret)) < 0 {
		first = b
	}
	return match{min(a.start, b.start), max(a.end, b.end), first.secret}
}
