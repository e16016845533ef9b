// Package sse reads and writes server-sent events: Writer writes frames to an HTTP response, Reader
// reads them from any stream of bytes. A frame that Writer accepts reaches a conforming client as
// exactly one frame with the same payload, or the connection breaks; a client that does not read is
// dropped by a deadline.
package sse

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// ErrFrame is returned for frames that the format cannot represent unchanged: a carriage return,
// bytes that are not UTF-8, an event name that is empty or has more than one line.
var ErrFrame = errors.New("sse: the frame cannot be carried unchanged")

// ErrBroken is returned for every failure to write: the client has disconnected, or is too slow.
var ErrBroken = errors.New("sse: the stream is broken")

var errClosed = errors.New("sse: the stream is closed")

// maxBuffer is the size at which a batch is written before its end, and the largest buffer that is
// kept for the next one.
const maxBuffer = 64 << 10

// ping has one newline: a blank line makes some clients fire an empty message.
var ping = []byte(": ping\n")

// Options configure a Writer. The zero value works.
type Options struct {
	ContentType  string        // default "text/event-stream; charset=utf-8"
	Keepalive    time.Duration // silence after which a comment is sent; default 15 s
	WriteTimeout time.Duration // how long a write may make no progress; default 30 s
	Broken       func(error)   // called once when a keep-alive detects a broken connection
}

// Writer writes frames: Retry and Event gather them, Flush sends them. These belong to one
// goroutine. Keep-alives are sent automatically until Close.
type Writer struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	opt Options
	buf *bytes.Buffer // nil while nothing is gathered, so that idle streams hold no memory

	mu       sync.Mutex // one write at a time; guards all fields below
	timer    *time.Timer
	last     time.Time // of the newest write
	deadline time.Time // as set on the connection
	err      error     // the first failure: nothing is written after it
}

// Open responds to a request with an event stream. Nothing is sent before Flush. The caller must
// Close the writer before its handler returns.
func Open(w http.ResponseWriter, opt Options) *Writer {
	if opt.Keepalive <= 0 {
		opt.Keepalive = 15 * time.Second
	}
	if opt.WriteTimeout <= 0 {
		opt.WriteTimeout = 30 * time.Second
	}
	Headers(w.Header())
	if opt.ContentType != "" {
		w.Header().Set("Content-Type", opt.ContentType)
	}
	w.WriteHeader(http.StatusOK)
	sw := &Writer{w: w, rc: http.NewResponseController(w), opt: opt, last: time.Now()}
	sw.mu.Lock()
	defer sw.mu.Unlock()
	sw.timer = time.AfterFunc(opt.Keepalive, sw.sendKeepalive)
	return sw
}

// Headers sets the headers of an event stream.
func Headers(h http.Header) {
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
}

// Retry adds the reconnection time to the frame of the next event.
func (w *Writer) Retry(d time.Duration) {
	b := w.frameBuffer()
	b.WriteString("retry: ")
	b.Write(strconv.AppendInt(b.AvailableBuffer(), d.Milliseconds(), 10))
	b.WriteByte('\n')
}

// Event gathers one frame: event, id, data, in this order.
func (w *Writer) Event(event string, id int64, data []byte) error {
	if !isValidName(event) || !isSingleLine(data) {
		return ErrFrame
	}
	b := w.frameBuffer()
	b.WriteString("event: ")
	b.WriteString(event)
	b.WriteString("\nid: ")
	b.Write(strconv.AppendInt(b.AvailableBuffer(), id, 10))
	b.WriteByte('\n')
	return w.writeData(data)
}

// isValidName reports whether an event can have this name.
func isValidName(event string) bool {
	return event != "" && !strings.ContainsAny(event, "\r\n") && utf8.ValidString(event)
}

// isSingleLine reports whether data can be sent unchanged.
func isSingleLine(data []byte) bool { return bytes.IndexByte(data, '\r') < 0 && utf8.Valid(data) }

// Message gathers one frame without a name. With id 0 it has no id either: a client that reconnects
// afterwards receives everything after the newest id again.
func (w *Writer) Message(id int64, data []byte) error {
	if !isSingleLine(data) {
		return ErrFrame
	}
	b := w.frameBuffer()
	if id != 0 {
		b.WriteString("id: ")
		b.Write(strconv.AppendInt(b.AvailableBuffer(), id, 10))
		b.WriteByte('\n')
	}
	return w.writeData(data)
}

// Named gathers one frame with a name and without an id.
func (w *Writer) Named(event string, data []byte) error {
	if !isValidName(event) || !isSingleLine(data) {
		return ErrFrame
	}
	b := w.frameBuffer()
	b.WriteString("event: ")
	b.WriteString(event)
	b.WriteByte('\n')
	return w.writeData(data)
}

// writeData gathers the data of a frame, and ends it.
func (w *Writer) writeData(data []byte) error {
	b := w.frameBuffer()
	for {
		line, rest, more := bytes.Cut(data, newline)
		b.WriteString("data: ")
		b.Write(line)
		b.WriteByte('\n')
		if !more {
			break
		}
		data = rest
	}
	b.WriteByte('\n')
	if b.Len() >= maxBuffer {
		return w.Flush()
	}
	return nil
}

var newline = []byte("\n")

// Flush sends everything gathered so far.
func (w *Writer) Flush() error {
	b := w.buf
	if b == nil {
		return nil
	}
	w.buf = nil
	w.mu.Lock()
	err := w.writeAndFlush(b.Bytes())
	w.mu.Unlock()
	if b.Cap() <= 2*maxBuffer {
		b.Reset()
		buffers.Put(b)
	}
	return err
}

// Ping sends a comment now, before the next keep-alive is due.
func (w *Writer) Ping() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writeAndFlush(ping)
}

// Close ends the keep-alives. Afterwards the Writer does not use the response any more. The write
// deadline stays on the connection, for the end of the response: the handler of the next request on
// it sets another.
func (w *Writer) Close() {
	w.timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = errClosed
	}
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (w *Writer) frameBuffer() *bytes.Buffer {
	if w.buf == nil {
		w.buf = buffers.Get().(*bytes.Buffer)
	}
	return w.buf
}

// sendKeepalive runs when the stream may have been silent long enough. Writes only record their
// time, so that the busy path never touches the timer.
func (w *Writer) sendKeepalive() {
	w.mu.Lock()
	if w.err != nil {
		w.mu.Unlock()
		return
	}
	wait := w.opt.Keepalive - time.Since(w.last)
	var err error
	if wait <= 0 {
		err = w.writeAndFlush(ping)
		wait = w.opt.Keepalive
	}
	if err == nil {
		w.timer.Reset(wait)
	}
	w.mu.Unlock()
	if err != nil && w.opt.Broken != nil {
		w.opt.Broken(err)
	}
}

// writeAndFlush sends bytes and flushes them. The caller holds mu.
func (w *Writer) writeAndFlush(p []byte) error {
	if w.err != nil {
		return w.err
	}
	w.last = time.Now()
	// Moving a deadline costs as much as writing a frame, so one that is nearly far enough away is
	// kept.
	if w.deadline.Sub(w.last) < w.opt.WriteTimeout-w.opt.WriteTimeout/32 {
		w.deadline = w.last.Add(w.opt.WriteTimeout)
		if err := w.rc.SetWriteDeadline(w.deadline); err != nil {
			w.err = fmt.Errorf("%w: set the write deadline: %w", ErrBroken, err)
			return w.err
		}
	}
	if _, err := w.w.Write(p); err != nil {
		w.err = fmt.Errorf("%w: write: %w", ErrBroken, err)
		return w.err
	}
	if err := w.rc.Flush(); err != nil {
		w.err = fmt.Errorf("%w: flush: %w", ErrBroken, err)
		return w.err
	}
	return nil
}
