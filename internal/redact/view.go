package redact

// symbol is one decoded byte of a text, with its position in the text.
type symbol struct {
	b          byte
	start, end int
}

// view decodes a text in a dialect. Each byte costs the same however many marks and beginnings of
// escapes the text has.
type view struct {
	*dialect
	emit    func(symbol)
	pending []symbol        // an incomplete escape
	room    []symbol        // buffer of pending, so that marks in a row need no memory each
	text    [maxEscape]byte // the bytes of pending, if they are the beginning of an escape
	meaning [maxEscape]byte // buffer for the meaning of an escape
}

// feed adds the next byte.
func (v *view) feed(s symbol) {
	n := len(v.pending)
	if n == 0 {
		if v.dialect == nil || s.b != v.mark {
			v.emit(s)
			return
		}
		v.text[0] = s.b
		v.push(s)
		return
	}
	if n < maxEscape && s.end-v.pending[0].start < maxEscape {
		v.text[n] = s.b
		switch v.next(v.text[:n+1]) {
		case unfinished:
			v.push(s)
			return
		case noEscape:
			for _, p := range v.pending { // only the first symbol is a mark
				v.emit(p)
			}
			v.pending = v.room[:0]
			v.feed(s)
			return
		}
	}
	v.push(s)
	v.flushPending(false)
}

func (v *view) push(s symbol) {
	if len(v.pending) == cap(v.pending) { // the bytes already read precede it in the buffer
		if need := len(v.pending) + 1; cap(v.room) < 2*need {
			v.room = make([]symbol, 0, max(4*need, 2*maxEscape))
		}
		v.pending = append(v.room[:0], v.pending...)
	}
	v.pending = append(v.pending, s)
}

// finish stops waiting for the end of an escape.
func (v *view) finish() { v.flushPending(true) }

// flushPending decodes pending until it begins with an incomplete escape.
func (v *view) flushPending(whole bool) {
	for len(v.pending) > 0 {
		first := v.pending[0]
		if first.b != v.mark {
			v.emit(first)
			v.pending = v.pending[1:]
			continue
		}
		n := 0
		for ; n < len(v.pending) && n < maxEscape; n++ {
			v.text[n] = v.pending[n].b
		}
		meaning, length, more := v.decode(v.meaning[:0], v.text[:n])
		if more && !whole && v.pending[len(v.pending)-1].end-first.start < maxEscape {
			return
		}
		if more || length == 0 {
			if !v.drop {
				v.emit(first)
			}
			v.pending = v.pending[1:]
			continue
		}
		v.replaceEscape(meaning, length)
	}
	v.pending = v.room[:0]
}

// replaceEscape replaces the bytes of an escape with its meaning.
func (v *view) replaceEscape(meaning []byte, length int) {
	start, end := v.pending[0].start, v.pending[length-1].end
	if !v.again {
		v.pending = v.pending[length:]
		for _, b := range meaning {
			v.emit(symbol{b, start, end})
		}
		return
	}
	if more := len(meaning) - length; more > 0 { // &nGt; is one of the few that grow
		v.pending = append(make([]symbol, more, more+len(v.pending)), v.pending...)
		length += more
	}
	v.pending = v.pending[length-len(meaning):]
	for i, b := range meaning {
		v.pending[i] = symbol{b, start, end}
	}
}
