package faultproxy

import (
	"bytes"
	"regexp"
	"time"
)

// Direction is the direction of a chunk.
type Direction int

// The two directions.
const (
	ToServer Direction = iota
	ToClient
)

// Chunk is one read from one side of a connection.
type Chunk struct {
	Conn      int       // the connection's number, from 1 in the order of acceptance
	Direction Direction // direction of the chunk
	Offset    int64     // bytes of this connection and direction that were received before
	Data      []byte    // only valid during the call of the hook; must not be changed
}

// Hook decides what happens to a chunk. Its calls do not overlap, so it needs no lock for its
// own state; while it blocks, no chunk of any connection passes.
type Hook func(Chunk) Action

// Action is a hook's decision. Its zero value is Forward.
type Action struct {
	kind  kind
	bytes int
	delay time.Duration
}

type kind int

const (
	forward kind = iota
	reset
	swallow
	freeze
)

// Forward passes the chunk on.
var Forward = Action{}

// Swallow drops the chunk as if it had been delivered.
var Swallow = Action{kind: swallow}

// FreezeConn makes this connection half-open permanently: neither this chunk nor anything later
// passes, in either direction. Only Cut and Close end it.
var FreezeConn = Action{kind: freeze}

// ResetAfter forwards the first n bytes of the chunk and then resets both sides.
func ResetAfter(n int) Action { return Action{kind: reset, bytes: n} }

// DelayBy forwards the chunk after d. The other direction is not delayed.
func DelayBy(d time.Duration) Action { return Action{delay: d} }

// CutExchange returns a hook that resets one connection after n bytes of one exchange. The exchange
// begins with the first chunk that match accepts. It counts the bytes of both directions of that
// connection, in the order in which they pass: first the request, then the response. Fired, unless
// it is nil, is called once, just before the reset.
func CutExchange(match func(Chunk) bool, n int, fired func()) Hook {
	conn, left := 0, n
	return func(c Chunk) Action {
		switch {
		case left < 0: // finished
			return Forward
		case conn == 0 && match(c):
			conn = c.Conn
		case conn != c.Conn:
			return Forward
		}
		if len(c.Data) < left {
			left -= len(c.Data)
			return Forward
		}
		after := left
		left = -1
		if fired != nil {
			fired()
		}
		return ResetAfter(after)
	}
}

// Executes returns a match for CutExchange: it accepts the chunk with which a client executes a
// statement whose SQL contains text. It recognizes simple queries, unnamed statements and, by the
// names that pgx gives them, prepared ones, for which it must see the connection from its start.
func Executes(text string) func(Chunk) bool {
	prepare := regexp.MustCompile(`(stmtcache_[0-9a-f]+)\x00[^\x00]*` + regexp.QuoteMeta(text))
	names := map[string]bool{}
	return func(c Chunk) bool {
		if c.Direction != ToServer {
			return false
		}
		prepared := prepare.FindAllSubmatch(c.Data, -1)
		for _, m := range prepared {
			names[string(m[1])] = true
		}
		for name := range names {
			if binds(c.Data, name) {
				return true
			}
		}
		return prepared == nil && bytes.Contains(c.Data, []byte(text))
	}
}

// binds reports whether data contains a Bind message for the named statement: B, four bytes of
// length, the unnamed portal, the name.
func binds(data []byte, name string) bool {
	for rest := data; ; {
		i := bytes.Index(rest, []byte("\x00"+name+"\x00"))
		if i < 0 {
			return false
		}
		if i >= 5 && rest[i-5] == 'B' {
			return true
		}
		rest = rest[i+1:]
	}
}
