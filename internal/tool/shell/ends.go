package shell

import (
	"fmt"
	"slices"
	"strings"
)

// The kept parts of an output: its beginning, which shows the plan, and its end, which shows the
// error.
const (
	keepHead = 768 << 10
	keepTail = 256 << 10
)

// ends keeps both ends of an output. It implements redact.Marker and counts the bytes that the
// command printed, not those of the marks: otherwise the number of omitted bytes would reveal
// whether the omitted part contained a secret's value.
type ends struct {
	head   []byte
	tail   []byte // a ring once it is full
	next   int    // the position at which the ring continues
	total  int64  // bytes printed
	marks  []mark // marks in head and tail, in order, and some that were overwritten
	tidyAt int    // the number of marks at which the overwritten ones are removed
}

// mark is a text shown in place of a part of the output; head and tail contain filler at its place.
type mark struct {
	start, end int64
	text       string
}

// Write implements io.Writer. It accepts everything.
func (e *ends) Write(p []byte) (int, error) {
	n := len(p)
	e.total += int64(n)
	room := min(keepHead-len(e.head), len(p))
	e.head = append(e.head, p[:room]...)
	p = p[room:]
	if skip := len(p) - keepTail; skip > 0 { // these bytes would be overwritten at once
		p = p[skip:]
	}
	for len(p) > 0 {
		if len(e.tail) < keepTail {
			room := min(keepTail-len(e.tail), len(p))
			e.tail = append(e.tail, p[:room]...)
			p = p[room:]
			continue
		}
		c := copy(e.tail[e.next:], p)
		e.next = (e.next + c) % keepTail
		p = p[c:]
	}
	return n, nil
}

var filler [4 << 10]byte

// WriteMark implements redact.Marker.
func (e *ends) WriteMark(text string, length int) error {
	if len(e.marks) >= e.tidyAt {
		e.marks = slices.DeleteFunc(e.marks, func(m mark) bool { return m.start >= keepHead && m.end <= e.total-keepTail })
		e.tidyAt = max(2*len(e.marks), 1<<10)
	}
	e.marks = append(e.marks, mark{e.total, e.total + int64(length), text})
	for length > 0 {
		n := min(length, len(filler))
		if _, err := e.Write(filler[:n]); err != nil {
			return err
		}
		length -= n
	}
	return nil
}

// String returns the output, with a line about the number of omitted bytes.
func (e *ends) String() string {
	tail := slices.Concat(e.tail[e.next:], e.tail[:e.next])
	lost := e.total - int64(len(e.head)+len(tail))
	if lost == 0 {
		return e.marked(slices.Concat(e.head, tail), 0)
	}
	return appendLine(e.marked(e.head, 0), fmt.Sprintf("[%d bytes are left out here]\n", lost)) + e.marked(tail, e.total-int64(len(tail)))
}

// marked returns the part of the output that begins at start, with its marks.
func (e *ends) marked(part []byte, start int64) string {
	var b strings.Builder
	at, end := start, start+int64(len(part))
	for _, m := range e.marks {
		if m.end <= at || m.start >= end {
			continue
		}
		if m.start > at {
			b.Write(part[at-start : m.start-start])
		}
		b.WriteString(m.text)
		at = min(m.end, end)
	}
	b.Write(part[at-start:])
	return b.String()
}
