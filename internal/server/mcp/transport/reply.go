package transport

import (
	"net/http"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/sse"
)

// reply is an HTTP response: one JSON object, or an event stream if a notification precedes the
// response or the call stays quiet.
type reply struct {
	w      http.ResponseWriter
	opt    sse.Options
	broken func() // called if the client does not read

	mu     sync.Mutex
	stream *sse.Writer // nil: the stream has not begun
	closed bool
}

func newReply(w http.ResponseWriter, s *server.Server, broken func()) *reply {
	return &reply{w: w, broken: broken, opt: sse.Options{
		ContentType: request.StreamType, // in the protocol's spelling
		Keepalive:   s.Keepalive, WriteTimeout: s.WriteTimeout, Broken: func(error) { broken() },
	}}
}

// streamLocked begins the stream if it has not begun. The caller holds mu.
func (o *reply) streamLocked() *sse.Writer {
	if o.stream == nil {
		o.stream = sse.Open(o.w, o.opt)
	}
	return o.stream
}

// beginStream makes the response a stream.
func (o *reply) beginStream() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.streamLocked()
}

// writeEvent sends a message of the protocol in the stream.
func (o *reply) writeEvent(text []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.streamLocked().Named("message", event.OneLine(text))
	if err == nil {
		err = o.stream.Flush()
	}
	if err != nil {
		o.broken()
	}
	return err
}

// writeResponse sends a response: as the whole body, unless the stream has begun.
func (o *reply) writeResponse(status int, response any) error {
	text, err := server.Encode(response)
	if err != nil {
		return err
	}
	o.mu.Lock()
	streaming := o.stream != nil
	o.mu.Unlock()
	if streaming {
		_ = o.writeEvent(text[:len(text)-1]) // a client that has left needs no response
		return nil
	}
	o.stopKeepAlive()
	server.WriteBody(o.w, status, text)
	return nil
}

// keepAlive begins the stream with a comment if it has not begun after a while, until stop is
// called. A stream that has begun keeps itself alive.
func (o *reply) keepAlive() (stop func()) {
	timer := time.AfterFunc(o.opt.Keepalive, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.stream == nil && !o.closed && o.streamLocked().Ping() != nil {
			o.broken()
		}
	})
	return func() { timer.Stop() }
}

// stopKeepAlive ends the keep-alives: afterwards nothing touches the response.
func (o *reply) stopKeepAlive() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if o.stream != nil {
		o.stream.Close()
	}
}
