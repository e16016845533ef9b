package sse

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"time"
)

// ErrTooLong is returned if a line, or the data of one frame, exceeds the limit of the reader.
var ErrTooLong = errors.New("sse: the frame is too long")

// MaxFrame is the limit of one frame's data unless Limit sets another.
const MaxFrame = 8 << 20

// Frame is one event as a client sees it.
type Frame struct {
	Event string        // "message" if the stream names none
	ID    string        // the last id of the stream so far
	Data  []byte        // valid until the next call of Next
	Retry time.Duration // a reconnection time sent since the previous frame; 0 for none
}

// Reader parses an event stream as the HTML standard defines it: any line ending, a byte order
// mark, comments, fields without a colon, chunks that end anywhere. It drops a frame that the end
// of the stream truncates.
type Reader struct {
	r     io.Reader
	limit int
	err   error

	buf     []byte
	start   int  // of the current line
	scanned int  // no line ending before this position
	end     int  // of the bytes read so far
	skipLF  bool // the previous line ended in CR: an LF belongs to it
	began   bool // past the position of the byte order mark

	event   string
	id      string // as read; it applies from the next blank line on
	lastID  string
	data    []byte
	hasData bool
	retry   time.Duration
}

// NewReader returns a Reader for r.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: r, limit: MaxFrame, buf: make([]byte, 4096)}
}

// Limit sets the maximum number of bytes of a line or a frame's data.
func (r *Reader) Limit(n int) { r.limit = n }

// LastEventID returns the id to reconnect with. It can be newer than the last frame's, because an
// id also counts without data, but it is never the id of a truncated frame.
func (r *Reader) LastEventID() string { return r.lastID }

// Next returns the next frame, or io.EOF at the end of the stream.
func (r *Reader) Next() (Frame, error) {
	r.event, r.data, r.hasData = "", r.data[:0], false
	for {
		line, err := r.nextLine()
		if err != nil {
			return Frame{}, err
		}
		if len(line) > 0 {
			if err := r.parseField(line); err != nil {
				r.err = err
				return Frame{}, err
			}
			continue
		}
		r.lastID = r.id
		if !r.hasData {
			r.event = ""
			continue
		}
		f := Frame{Event: r.event, ID: r.id, Data: r.data, Retry: r.retry}
		if f.Event == "" {
			f.Event = "message"
		}
		r.retry = 0
		return f, nil
	}
}

// parseField parses one line that is not empty.
func (r *Reader) parseField(line []byte) error {
	name, value, _ := bytes.Cut(line, colon)
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		if r.hasData {
			r.data = append(r.data, '\n')
		}
		if len(r.data)+len(value) > r.limit {
			return ErrTooLong
		}
		r.data = append(r.data, value...)
		r.hasData = true
	case "event":
		r.event = internName(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			r.id = string(value)
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 63); err == nil {
			r.retry = time.Duration(min(ms, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond
		}
	}
	return nil // anything else is a comment or unknown
}

var (
	colon = []byte(":")
	bom   = []byte("\xEF\xBB\xBF")
)

// internName avoids allocating the usual names for every frame.
func internName(name []byte) string {
	switch string(name) {
	case "text":
		return "text"
	case "tool_use":
		return "tool_use"
	case "tool_result":
		return "tool_result"
	}
	return string(name)
}

// nextLine returns the next line without its ending.
func (r *Reader) nextLine() ([]byte, error) {
	for {
		if r.skipLF && r.start < r.end {
			if r.buf[r.start] == '\n' {
				r.start++
			}
			r.skipLF = false
			r.scanned = max(r.scanned, r.start)
		}
		if i := lineEnd(r.buf[r.scanned:r.end]); i >= 0 {
			line := r.buf[r.start : r.scanned+i]
			r.skipLF = r.buf[r.scanned+i] == '\r'
			r.start = r.scanned + i + 1
			r.scanned = r.start
			if !r.began {
				r.began = true
				line = bytes.TrimPrefix(line, bom)
			}
			return line, nil
		}
		r.scanned = r.end
		if r.end-r.start > r.limit+len("data: ") {
			r.err = ErrTooLong
		}
		if err := r.readMore(); err != nil {
			return nil, err
		}
	}
}

// lineEnd finds the first CR or LF.
func lineEnd(p []byte) int {
	lf := bytes.IndexByte(p, '\n')
	if lf >= 0 {
		p = p[:lf]
	}
	if cr := bytes.IndexByte(p, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// readMore reads more bytes after those of the current line.
func (r *Reader) readMore() error {
	if r.err != nil {
		return r.err
	}
	if r.start > 0 {
		copy(r.buf, r.buf[r.start:r.end])
		r.end -= r.start
		r.scanned -= r.start
		r.start = 0
	}
	if r.end == len(r.buf) {
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	for range 100 {
		n, err := r.r.Read(r.buf[r.end:])
		r.end += n
		r.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	r.err = io.ErrNoProgress
	return r.err
}
