package builtin

import (
	"fmt"
	"strings"
	"time"
)

// The format of a delta of @bench: the time of emission in nanoseconds since 1970, a blank, its
// number from 0, both in base 36 and of fixed width, filling, and a newline, which still separates
// deltas after rows were merged.
const (
	timeDigits  = 12
	indexDigits = 6
	indexAt     = timeDigits + 1
	fillAt      = indexAt + indexDigits

	// MinStamp is the size in bytes of the shortest delta of @bench.
	MinStamp = fillAt + 1
)

const digits = "0123456789abcdefghijklmnopqrstuvwxyz"

// stampDeltas returns the i-th delta.
func stampDeltas(i, size int, at time.Time) string {
	b := make([]byte, size)
	putNumber(b[:timeDigits], at.UnixNano())
	b[timeDigits] = ' '
	putNumber(b[indexAt:fillAt], int64(i))
	for n := fillAt; n < size-1; n++ {
		b[n] = '.'
	}
	b[size-1] = '\n'
	return string(b)
}

func putNumber(b []byte, n int64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = digits[n%36]
		n /= 36
	}
}

func parseNumber(s string) (n int64, ok bool) {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			n = n*36 + int64(c-'0')
		case c >= 'a' && c <= 'z':
			n = n*36 + int64(c-'a') + 10
		default:
			return 0, false
		}
	}
	return n, true
}

// saidStamp is part.sentBytes for deltas with an unknown time.
func saidStamp(i, size int, shown string) (n int, ok bool) {
	shown = shown[:min(size, len(shown))]
	if _, ok := parseNumber(shown[:min(timeDigits, len(shown))]); !ok {
		return 0, false
	}
	want := stampDeltas(i, size, time.Unix(0, 0))
	return len(shown), len(shown) <= timeDigits || shown[timeDigits:] == want[timeDigits:len(shown)]
}

// Tally reads the text of a @bench answer and checks that it consists of exactly its deltas, in
// order, once: however rows were merged, and across reconnects. The zero value is ready to use.
type Tally struct {
	Next int // number of the next delta: how many were read
	rest string
}

// Read reads the next piece of text and calls each, unless it is nil, with every delta that is now
// complete.
func (t *Tally) Read(text string, each func(index int, emitted time.Time)) error {
	if t.rest != "" {
		text = t.rest + text
	}
	for {
		line, after, whole := strings.Cut(text, "\n")
		if !whole {
			t.rest = text
			return nil
		}
		text = after
		if len(line) < fillAt || line[timeDigits] != ' ' {
			return fmt.Errorf("after %d deltas: %.60q is no delta", t.Next, line)
		}
		at, ok := parseNumber(line[:timeDigits])
		index, numbered := parseNumber(line[indexAt:fillAt])
		if !ok || !numbered {
			return fmt.Errorf("after %d deltas: %.60q is no delta", t.Next, line)
		}
		if index != int64(t.Next) {
			return fmt.Errorf("after %d deltas: delta %d instead of %d", t.Next, index, t.Next)
		}
		t.Next++
		if each != nil {
			each(int(index), time.Unix(0, at))
		}
	}
}

// Whole reports whether exactly n deltas were read and nothing else.
func (t *Tally) Whole(n int) error {
	switch {
	case t.Next != n:
		return fmt.Errorf("%d deltas instead of %d", t.Next, n)
	case t.rest != "":
		return fmt.Errorf("after %d deltas: %.60q is no delta", t.Next, t.rest)
	}
	return nil
}
