package server

import (
	"crypto/rand"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/logging"
	"github.com/parley-server/parley/internal/server/request"
)

// answer is a response that is being written. It records whether anything was sent, and gives every
// response a deadline: that of an earlier response may still be set on the connection.
type answer struct {
	http.ResponseWriter
	id      string // id of the request; "": a command's
	timeout time.Duration
	body    bool // the request has a body
	status  int  // 0: nothing was sent
	bytes   int64
}

// Unwrap gives http.ResponseController access to the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
		rc, until := http.NewResponseController(a.ResponseWriter), time.Now().Add(a.timeout)
		if a.body && !strings.HasPrefix(a.Header().Get("Content-Type"), request.StreamType) {
			// net/http first reads the rest of the body, which may never arrive.
			_ = rc.SetReadDeadline(until)
			until = until.Add(a.timeout)
		}
		_ = rc.SetWriteDeadline(until)
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	n, err := a.ResponseWriter.Write(p)
	a.bytes += int64(n)
	return n, err
}

// Handler wraps all handlers: it sets the request's id, writes the error envelope and handles
// panics. next writes only on success.
func (s *Server) Handler(next func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w, timeout: s.WriteTimeout, body: r.ContentLength != 0}
		h := a.Header()
		if s.command == "" { // a command has no log that an id leads to
			a.id = requestID(r)
			h.Set("X-Request-Id", a.id)
		}
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		ctx, about := withAccess(logging.WithRequestID(r.Context(), a.id))
		ctx, span := s.startSpan(ctx, r)
		r = r.WithContext(ctx)
		defer s.endSpan(span, a, r, about)
		defer s.logRequest(a, r, about, time.Now())
		defer func() {
			if p := recover(); p != nil {
				s.respondToPanic(a, r, p)
			}
		}()
		err := s.checkLocal(r)
		if err == nil {
			err = next(a, r)
		}
		if err != nil {
			s.writeError(a, r, err)
		}
	})
}

// respondToPanic responds for a handler that panicked. It aborts a response that has begun, so that
// no client takes it for complete.
func (s *Server) respondToPanic(a *answer, r *http.Request, p any) {
	stack := debug.Stack()
	if aside, ok := p.(*asidePanic); ok {
		p, stack = aside.value, aside.stack
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	s.Log.ErrorContext(r.Context(), "a handler panicked", "method", r.Method, "route", routeOf(r), "panic", p, "stack", string(stack))
	if a.status != 0 {
		panic(http.ErrAbortHandler)
	}
	s.writeFault(a, r, fault.New(fault.Internal, "Internal error."))
}

// MaxRequestID is the maximum length of a caller's id for a request.
const MaxRequestID = 128

// requestID returns the caller's id for the request, or a new one.
func requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); len(id) <= MaxRequestID && request.Printable(id) {
		return id
	}
	return "req_" + rand.Text()
}
