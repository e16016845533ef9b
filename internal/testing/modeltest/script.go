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

// Script is what a fake provider answers. It must not be copied once a server
// runs with it.
type Script struct {
	// Replies are given one to each request. The last one answers all that follow.
	Replies []Reply
	// Answer, when set, decides by the request instead.
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

// Reply is one answer.
type Reply struct {
	Text  []string     // in the pieces that are sent
	Calls []Call       // after the text
	Stop  string       // the provider's own word; empty means what the content implies
	Usage *model.Usage // nil means that the server sends none

	// Status other than 200 makes an HTTP failure of Header and Body.
	Status int
	Header http.Header
	Body   string

	// Frames are sent as they are, instead of Text, Calls, Stop and Usage.
	Frames []string

	CRLF      bool // lines end with \r\n
	KeepAlive bool // a comment before every frame
	Bytes     int  // so many bytes are written and flushed at once; 0 means whole frames
	Cut       int  // the connection is reset after so many frames; 0 means never
	// Hold sends nothing more after so many frames and waits for the client to
	// leave; 0 means never. Call CloseClientConnections before Close if it stays.
	Hold int
}

// Call is a tool call with its input as the model wrote it, JSON or not.
type Call struct {
	ID, Tool, Input string
}

// Requests returns what was received so far.
func (s *Script) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Gone receives a value for every request that the client left before its end.
func (s *Script) Gone() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left()
}

func (s *Script) left() chan struct{} {
	if s.gone == nil {
		s.gone = make(chan struct{}, 64)
	}
	return s.gone
}

func (s *Script) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.left() <- struct{}{}:
	default: // no receiver yet
	}
}

// next records a request and finds its answer.
func (s *Script) next(r *http.Request) (Request, Reply, error) {
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

// frames makes the wire form of a reply to a request.
type frames func(Request, Reply) []string

func serve(s *Script, paths []string, make frames) *httptest.Server {
	mux := http.NewServeMux()
	for _, p := range paths {
		mux.HandleFunc("POST "+p, func(w http.ResponseWriter, r *http.Request) {
			req, reply, err := s.next(r)
			if err != nil {
				return // the client left while it was asking
			}
			if reply.Frames == nil {
				reply.Frames = make(req, reply)
			}
			s.send(w, r, reply)
		})
	}
	return httptest.NewServer(mux)
}
