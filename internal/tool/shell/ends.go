package shell

import "fmt"

// What is kept of an output: its beginning, where the plan is, and its end, where the
// error is. An agent reads 64 KiB of an output.
const (
	keepHead = 44 << 10
	keepTail = 16 << 10
)

// ends keeps both ends of what is written to it.
type ends struct {
	head []byte
	tail []byte // a ring once it is full
	next int    // where the ring goes on
	lost int64  // bytes that are in neither
}

// Write implements io.Writer. It takes everything.
func (e *ends) Write(p []byte) (int, error) {
	n := len(p)
	room := min(keepHead-len(e.head), len(p))
	e.head = append(e.head, p[:room]...)
	p = p[room:]
	if skip := len(p) - keepTail; skip > 0 { // these would be overwritten at once
		e.lost += int64(skip)
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
		e.lost += int64(c)
		e.next = (e.next + c) % keepTail
		p = p[c:]
	}
	return n, nil
}

// String is what was written, with a line about what is left out.
func (e *ends) String() string {
	if e.lost == 0 {
		return string(e.head) + string(e.tail)
	}
	return line(string(e.head), fmt.Sprintf("[%d bytes are left out here]\n", e.lost)) + string(e.tail[e.next:]) + string(e.tail[:e.next])
}
