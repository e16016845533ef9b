package httpapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
)

// answer is a response on its way out. It knows whether anything was sent, and
// gives every response a deadline: the one of an earlier response may still be set
// on the connection.
type answer struct {
	http.ResponseWriter
	id      string // of the request
	timeout time.Duration
	body    bool // the request has one
	status  int  // 0: nothing was sent
}

// Unwrap leads http.ResponseController to the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
		rc, until := http.NewResponseController(a.ResponseWriter), time.Now().Add(a.timeout)
		if a.body && !strings.HasPrefix(a.Header().Get("Content-Type"), streamType) {
			// First net/http reads what nobody has read of the body, and it may never come.
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
	return a.ResponseWriter.Write(p)
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.routes.ServeHTTP(w, r) }

// envelope is around everything: the request's id, the error envelope, panics.
func (s *server) envelope(next func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w, id: requestID(r), timeout: s.cfg.WriteTimeout, body: r.ContentLength != 0}
		h := a.Header()
		h.Set("X-Request-Id", a.id)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		began := time.Now()
		defer func() {
			if p := recover(); p != nil {
				s.panicked(a, r, p)
			}
			s.cfg.Log.DebugContext(r.Context(), "request", "request", a.id, "method", r.Method, "path", r.URL.Path,
				"status", a.status, "took", time.Since(began).Round(time.Microsecond))
		}()
		if err := next(a, r); err != nil {
			s.fail(a, r, err)
		}
	})
}

// panicked answers for a handler that cannot any more. An answer that has begun is
// cut off, so that nobody takes it for whole.
func (s *server) panicked(a *answer, r *http.Request, p any) {
	if p == http.ErrAbortHandler {
		panic(p)
	}
	s.cfg.Log.ErrorContext(r.Context(), "a handler panicked", "request", a.id, "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	if a.status != 0 {
		panic(http.ErrAbortHandler)
	}
	s.refuse(a, fault.New(fault.Internal, "Internal error."))
}

// fail answers with an error. What the caller cannot mend is logged here, once.
func (s *server) fail(a *answer, r *http.Request, err error) {
	f := fault.From(err)
	switch {
	case f != nil:
	case errors.Is(err, context.Canceled) || r.Context().Err() != nil: // the caller is gone, or the service is stopping
		f = fault.New(fault.Unavailable, "The service is stopping. Try again.")
	case unavailable(err):
		s.log(r, slog.LevelWarn, a, "the database cannot be reached", err)
		f = fault.New(fault.Unavailable, "The service cannot reach its database. Try again.")
	default:
		s.log(r, slog.LevelError, a, "a request failed", err)
		f = fault.New(fault.Internal, "Internal error.")
	}
	if a.status != 0 {
		return
	}
	s.refuse(a, f)
}

func (s *server) log(r *http.Request, level slog.Level, a *answer, msg string, err error) {
	s.cfg.Log.Log(context.WithoutCancel(r.Context()), level, msg, "request", a.id, "method", r.Method, "path", r.URL.Path, "err", err)
}

// failure is the one shape of errors.
type failure struct {
	Error struct {
		Type    fault.Type `json:"type"`
		Code    fault.Code `json:"code"`
		Message string     `json:"message"`
		Param   string     `json:"param,omitempty"`
		fault.Detail
		RetryAfter int `json:"retry_after,omitempty"`
	} `json:"error"`
	RequestID string `json:"request_id"`
}

// refuse writes a fault.
func (s *server) refuse(a *answer, f *fault.Error) {
	body := failure{RequestID: a.id}
	e := &body.Error
	e.Type, e.Code, e.Message, e.Param, e.Detail = f.Code.Type(), f.Code, f.Message, f.Param, f.Detail
	wait := f.Detail.RetryAfter
	if wait == 0 && (f.Code == fault.Unavailable || f.Code.Type() == fault.RateLimit) {
		wait = time.Second
	}
	h := a.Header()
	if wait > 0 {
		e.RetryAfter = max(1, int((wait+time.Second-1)/time.Second))
		h.Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	if c := challenge(f); c != "" {
		h.Set("WWW-Authenticate", c)
	}
	h.Set("Cache-Control", "no-store")
	h.Del("ETag")
	if err := writeJSON(a, f.Code.Status(), body); err != nil {
		s.cfg.Log.Error("encode an error", "request", a.id, "code", f.Code, "err", err)
		a.WriteHeader(http.StatusInternalServerError)
	}
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := encode(v)
	if err == nil {
		writeBody(w, status, body)
	}
	return err
}

func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return buf.Bytes(), nil
}

// writeData answers with a value in the envelope of successes.
func writeData(w http.ResponseWriter, status int, v any) error {
	return writeJSON(w, status, struct {
		Data any `json:"data"`
	}{v})
}

// writeBody answers with JSON that is ready.
func writeBody(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", jsonType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller is gone: nobody is left to be told
}

// maxRequestID is how long a caller's name for a request may be.
const maxRequestID = 128

// requestID is the caller's name for the request, or a new one.
func requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); len(id) <= maxRequestID && printable(id) {
		return id
	}
	return "req_" + rand.Text()
}

// printable reports whether a text is printable ASCII, and not empty.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return s != ""
}
