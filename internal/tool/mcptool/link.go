package mcptool

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/tool"
)

// The limits of one call, and of the calls that open a session or list tools.
const (
	maxAnswer   = 10 << 20 // bytes of all answers
	maxRequests = 64       // a server can make the client send more, with questions and broken streams
)

// link sends the requests of a session. It counts those of a call, and keeps the reason why one of
// them failed: the client's own error repeats text of the server.
type link struct {
	send   func(call string, req *http.Request) (*http.Response, error)
	header map[string]string
	name   string // of the server
	ended  context.Context
	end    context.CancelFunc

	mu       sync.Mutex
	call     string
	greeting bool // the requests open or end the session
	requests int
	left     int64 // bytes
	failure  error
	status   int           // of the answer that is the failure; 0: another failure, or none
	scopes   []string      // that this answer asks for
	canceled chan struct{} // closed when the server has been sent the cancellation of the call
	told     bool          // canceled is closed
}

// beginCall starts the limits of a call.
func (l *link) beginCall(call string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.greeting = false
	l.call, l.requests, l.left, l.canceled, l.told = call, 0, maxAnswer, make(chan struct{}), false
	l.failure, l.status, l.scopes = nil, 0, nil
}

// greet starts the limits of requests that open or end the session.
func (l *link) greet(call string) {
	l.beginCall(call)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.greeting = true
}

// RoundTrip implements http.RoundTripper.
func (l *link) RoundTrip(req *http.Request) (*http.Response, error) {
	call, greeting, err := l.countRequest()
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	defer l.noteCancellation(req)()
	ctx, cancel := context.WithCancel(req.Context())
	unlink := context.AfterFunc(l.ended, cancel)
	if greeting {
		ctx = tool.WithoutEffect(ctx)
	}
	out := req.Clone(ctx)
	for name, value := range l.header {
		out.Header.Set(name, value)
	}
	res, err := l.send(call, out)
	if err != nil {
		unlink()
		cancel()
		return nil, l.fail(err)
	}
	l.noteStatus(req, res)
	res.Body = &answer{ReadCloser: res.Body, link: l, end: func() { unlink(); cancel() }}
	return res, nil
}

// countRequest counts a request of the call.
func (l *link) countRequest() (call string, greeting bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests++; l.requests > maxRequests {
		l.keep(tool.Refusal(fmt.Sprintf("The tool server %s asked for more than %d requests.", l.name, maxRequests)))
		l.end() // the client does not end the call for an answer that cannot be sent
		return "", false, l.failure
	}
	return l.call, l.greeting, nil
}

// noteCancellation returns a function that reports that a cancellation has been sent.
func (l *link) noteCancellation(req *http.Request) func() {
	if req.GetBody == nil {
		return func() {}
	}
	body, err := req.GetBody()
	if err != nil {
		return func() {}
	}
	head := make([]byte, 256)
	n, _ := io.ReadFull(body, head)
	body.Close()
	if !bytes.Contains(head[:n], []byte(`"notifications/cancelled"`)) {
		return func() {}
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.told {
			l.told = true
			close(l.canceled)
		}
	}
}

// noteStatus keeps the reason for an answer that is no result.
func (l *link) noteStatus(req *http.Request, res *http.Response) {
	if req.Method != http.MethodPost || res.StatusCode < 300 {
		return
	}
	why := fmt.Sprintf("The tool server %s answers HTTP %d %s.", l.name, res.StatusCode, http.StatusText(res.StatusCode))
	switch {
	case res.StatusCode < 400:
		why += " Redirects are not followed."
	case l.header["Authorization"] == "" && strings.Contains(res.Header.Get("WWW-Authenticate"), "resource_metadata"):
		why += " It needs OAuth: add it with --oauth."
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden:
		why += " An administrator can check the secret of the server."
	}
	scopes := scopesOf(res)
	if scopes != nil {
		why = fmt.Sprintf("The tool server %s needs more scopes: %s. Grant them: parley tools connect %[1]s --scope %s",
			l.name, strings.Join(scopes, ", "), strings.Join(scopes, ","))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure == nil {
		l.failure, l.status, l.scopes = tool.Refusal(why), res.StatusCode, scopes
	}
}

// scopesOf returns the scopes that a token lacks, as a response names them (RFC 6750); nil: none.
func scopesOf(res *http.Response) []string {
	if res.StatusCode != http.StatusForbidden {
		return nil
	}
	challenges, err := oauthex.ParseWWWAuthenticate(res.Header.Values("WWW-Authenticate"))
	if err != nil {
		return nil
	}
	for _, c := range challenges {
		if c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope" {
			return toolset.CleanScopes(strings.Fields(c.Params["scope"]))
		}
	}
	return nil
}

func (l *link) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep(err)
	return err
}

// keep requires the lock.
func (l *link) keep(err error) {
	if l.failure == nil {
		l.failure = err
	}
}

// reason returns why a request of the call failed, nil if none did, and the status of an answer that
// is the failure.
func (l *link) reason() (status int, failure error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status, l.failure
}

// answer is the body of a response, within the limit of the call.
type answer struct {
	io.ReadCloser
	link *link
	end  func()
}

func (a *answer) Read(p []byte) (int, error) {
	a.link.mu.Lock()
	left := a.link.left
	a.link.mu.Unlock()
	if left <= 0 {
		return 0, a.link.fail(tool.Refusal(fmt.Sprintf("The answer of the tool server %s is larger than %d MiB.", a.link.name, maxAnswer>>20)))
	}
	n, err := a.ReadCloser.Read(p[:min(int64(len(p)), left)])
	a.link.mu.Lock()
	a.link.left -= int64(n)
	a.link.mu.Unlock()
	if err != nil && err != io.EOF {
		a.link.fail(err)
	}
	return n, err
}

func (a *answer) Close() error {
	err := a.ReadCloser.Close()
	a.end()
	return err
}
