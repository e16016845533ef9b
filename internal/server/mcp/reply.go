package mcp

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/sse"
)

// reply is an HTTP response: one JSON object, or a stream if messages precede the response. It
// gives every write a deadline and keeps a quiet stream alive.
type reply struct {
	w         http.ResponseWriter
	rc        *http.ResponseController
	timeout   time.Duration
	keepalive time.Duration
	broken    func() // called when the client does not read

	mu     sync.Mutex
	last   time.Time // of the newest write; at first, of the beginning
	stream bool
}

func newReply(w http.ResponseWriter, timeout, keepalive time.Duration, broken func()) *reply {
	return &reply{w: w, rc: http.NewResponseController(w), timeout: timeout, keepalive: keepalive, broken: broken, last: time.Now()}
}

// event sends a message of the protocol in a stream.
func (o *reply) event(text []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.write("event: message\ndata: ", string(event.OneLine(text)), "\n\n")
}

// begin makes the body a stream.
func (o *reply) begin() {
	o.stream = true
	sse.Headers(o.w.Header())
	o.w.Header().Set("Content-Type", request.StreamType) // as the protocol writes it
	o.w.WriteHeader(http.StatusOK)
}

// write sends a piece of a stream, and begins it where it has not begun.
func (o *reply) write(parts ...string) error {
	if !o.stream {
		o.begin()
	}
	o.last = time.Now()
	_ = o.rc.SetWriteDeadline(o.last.Add(o.timeout))
	_, err := io.WriteString(o.w, strings.Join(parts, ""))
	if err == nil {
		err = o.rc.Flush()
	}
	if err != nil {
		o.broken()
	}
	return err
}

// response is the answer to a request.
type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *jsonrpc.Error  `json:"error,omitempty"`
}

// answer sends a response: as the whole body, unless a stream has begun.
func (o *reply) answer(status int, a response) error {
	a.Version = "2.0"
	if a.ID == nil {
		a.ID = json.RawMessage("null")
	}
	text, err := server.Encode(a)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.stream {
		server.WriteBody(o.w, status, text)
		return nil
	}
	_ = o.write("event: message\ndata: ", string(event.OneLine(text)), "\n") // who is gone needs no answer
	return nil
}

// alive sends a comment whenever the stream was quiet for a while, until stop is called.
func (o *reply) alive() (stop func()) { return repeat(o.keepalive, o.ping) }

// repeat calls do after a pause, and again after each pause that do returns, until stop is called.
func repeat(after time.Duration, do func() time.Duration) (stop func()) {
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		timer := time.NewTimer(after)
		defer timer.Stop()
		for {
			select {
			case <-done:
				return
			case <-timer.C:
				timer.Reset(do())
			}
		}
	}()
	return func() {
		close(done)
		<-gone
	}
}

// ping writes a comment if it is time to, and returns how long to wait for the next.
func (o *reply) ping() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if quiet := time.Since(o.last); quiet < o.keepalive {
		return o.keepalive - quiet
	}
	_ = o.write(": ping\n")
	return o.keepalive
}
