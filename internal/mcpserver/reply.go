package mcpserver

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/wire"
)

// reply is a response on its way out. It gives every write a deadline, keeps a quiet stream
// alive, and turns what the SDK has to say in plain text into errors of JSON-RPC.
type reply struct {
	w         http.ResponseWriter
	rc        *http.ResponseController
	timeout   time.Duration
	keepalive time.Duration
	broken    func() // called when nobody takes what is written

	mu      sync.Mutex
	last    time.Time // of the newest write
	refused int       // the status of what is held back
	text    strings.Builder
}

func newReply(w http.ResponseWriter, timeout, keepalive time.Duration, broken func()) *reply {
	return &reply{w: w, rc: http.NewResponseController(w), timeout: timeout, keepalive: keepalive, broken: broken}
}

// Header implements http.ResponseWriter.
func (o *reply) Header() http.Header { return o.w.Header() }

// WriteHeader implements http.ResponseWriter.
func (o *reply) WriteHeader(status int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begin(status)
}

func (o *reply) begin(status int) {
	h := o.w.Header()
	if status >= http.StatusBadRequest && strings.HasPrefix(h.Get("Content-Type"), "text/plain") {
		o.refused = status
		return
	}
	if h.Get("Content-Type") == wire.StreamType {
		h.Set("Cache-Control", "no-store, no-transform")
		h.Set("X-Accel-Buffering", "no")
	}
	o.last = time.Now()
	o.w.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (o *reply) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.refused != 0:
		return o.text.Write(p)
	case o.last.IsZero():
		o.begin(http.StatusOK)
	}
	return o.write(p)
}

func (o *reply) write(p []byte) (int, error) {
	o.last = time.Now()
	_ = o.rc.SetWriteDeadline(o.last.Add(o.timeout))
	n, err := o.w.Write(p)
	if err == nil {
		err = o.rc.Flush()
	}
	if err != nil {
		o.broken()
	}
	return n, err
}

// FlushError is what http.ResponseController looks for: what is written has been sent.
func (o *reply) FlushError() error { return nil }

// alive sends a comment whenever the stream was quiet for a while, until stop is called.
// The protocol must have chosen a stream.
func (o *reply) alive() (stop func()) {
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		timer := time.NewTimer(o.keepalive)
		defer timer.Stop()
		for {
			select {
			case <-done:
				return
			case <-timer.C:
				timer.Reset(o.ping())
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
	if o.last.IsZero() {
		o.begin(http.StatusOK)
	}
	_, _ = o.write([]byte(": ping\n"))
	return o.keepalive
}

// refuse answers with an error of JSON-RPC.
func (o *reply) refuse(status int, id json.RawMessage, e jsonrpc.Error) error {
	if len(id) == 0 || id[0] != '"' && id[0] != '-' && (id[0] < '0' || id[0] > '9') {
		id = json.RawMessage("null")
	}
	return door.WriteJSON(o.w, status, struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   jsonrpc.Error   `json:"error"`
	}{"2.0", id, e})
}

// finish tells what was held back.
func (o *reply) finish(id json.RawMessage) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refused == 0 {
		return nil
	}
	o.w.Header().Del("Connection")
	return o.refuse(o.refused, id, jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: strings.TrimSpace(o.text.String())})
}
