// Package modeltest runs fake model providers on loopback. They implement the real wire formats,
// valid and invalid: replies of text and calls, cut at any byte, broken off, rejected. With a base
// URL of such a server, everything above it runs unchanged.
package modeltest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/parley-server/parley/internal/model"
)

// Script is the behavior of a fake provider. It must not be copied once a server uses it.
type Script struct {
	// Replies are sent one per request. The last one is repeated.
	Replies []Reply
	// Answer, if set, returns the reply to a request instead.
	Answer func(Request) Reply

	mu       sync.Mutex
	requests []Request
	gone     chan struct{}
}

// Say returns a script that always replies with text, in these pieces.
func Say(pieces ...string) *Script {
	return &Script{Replies: []Reply{{Text: pieces, Usage: &model.Usage{InputTokens: 10, OutputTokens: 5}}}}
}

// Request is what a server received.
type Request struct {
	N      int // from 0
	Path   string
	Header http.Header
	Body   []byte
}

// Reply is one response.
type Reply struct {
	Text  []string     // in the pieces that are sent
	Calls []Call       // follow the text
	Stop  string       // the provider's own value; "": implied by the content
	Usage *model.Usage // nil: the server sends none
	// Reasoning is sent before the rest, an item for each text.
	Reasoning []string

	// Status other than 200 makes an HTTP failure of Header and Body.
	Status int
	Header http.Header
	Body   string

	// Frames are sent unchanged, instead of Text, Calls, Stop and Usage.
	Frames []string

	CRLF      bool // lines end with \r\n
	KeepAlive bool // a comment before every frame
	Bytes     int  // so many bytes are written and flushed at once; 0: whole frames
	Cut       int  // the connection is reset after so many frames; 0: never
	// Hold sends nothing more after so many frames and waits for the client to disconnect; 0:
	// never. Call CloseClientConnections before Close if it stays connected.
	Hold int
	// Resume makes a held reply continue when it is closed.
	Resume <-chan struct{}
}

// Call is a tool call with its input as the model wrote it, valid JSON or not.
type Call struct {
	ID, Tool, Input string
}

// Requests returns the requests so far.
func (s *Script) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Gone receives a value for every request that the client canceled.
func (s *Script) Gone() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leftSignal()
}

func (s *Script) leftSignal() chan struct{} {
	if s.gone == nil {
		s.gone = make(chan struct{}, 64)
	}
	return s.gone
}

func (s *Script) signalLeft() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.leftSignal() <- struct{}{}:
	default: // no receiver yet
	}
}

// nextReply records a request and returns its reply.
func (s *Script) nextReply(r *http.Request) (Request, Reply, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return Request{}, Reply{}, err
	}
	s.mu.Lock()
	req := Request{N: len(s.requests), Path: r.URL.Path, Header: r.Header.Clone(), Body: data}
	s.requests = append(s.requests, req)
	s.mu.Unlock()
	if s.Answer != nil {
		return req, s.Answer(req), nil
	}
	if len(s.Replies) == 0 {
		return req, Reply{}, nil
	}
	return req, s.Replies[min(req.N, len(s.Replies)-1)], nil
}

// frames encodes the reply to a request.
type frames func(Request, Reply) []string

func serveScript(s *Script, paths []string, make frames) *httptest.Server {
	mux := http.NewServeMux()
	for _, p := range paths {
		mux.HandleFunc("POST "+p, func(w http.ResponseWriter, r *http.Request) {
			req, reply, err := s.nextReply(r)
			if err != nil {
				return // the client left before the reply
			}
			if reply.Frames == nil {
				reply.Frames = make(req, reply)
			}
			s.sendReply(w, r, reply)
		})
	}
	return httptest.NewServer(mux)
}
