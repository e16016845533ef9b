package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/pgerr"
)

// Failure is the error envelope of every response.
type Failure struct {
	Type    fault.Type `json:"type"`
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
	Param   string     `json:"param,omitempty"`
	fault.Detail
	RetryAfter int `json:"retry_after,omitempty"` // seconds
}

// FailureOf converts a fault to a Failure.
func FailureOf(f *fault.Error) Failure {
	failure := Failure{Type: f.Code.Type(), Code: f.Code, Message: f.Message, Param: f.Param, Detail: f.Detail}
	wait := f.Detail.RetryAfter
	if wait == 0 && (f.Code == fault.Unavailable || f.Code.Type() == fault.RateLimit) {
		wait = time.Second
	}
	if wait > 0 {
		failure.RetryAfter = max(1, ceilSeconds(wait))
	}
	return failure
}

// Fault returns the error for the caller. It logs errors that the caller cannot correct, once, with
// the keys in about. ctx is the request's.
func (s *Server) Fault(ctx context.Context, err error, about ...any) *fault.Error {
	log := func(level slog.Level, msg string) {
		s.Log.Log(context.WithoutCancel(ctx), level, msg, append(about, "err", err)...)
	}
	f := fault.From(err)
	switch {
	case f != nil:
	case errors.Is(err, context.Canceled) || ctx.Err() != nil: // the caller has left, or the service is stopping
		f = fault.New(fault.Unavailable, "The service is stopping. Try again.")
	case pgerr.IsDiskFull(err):
		log(slog.LevelError, "the database has no disk space left")
		f = fault.New(fault.Unavailable, "The database has no disk space left, so nothing can be stored. Try again later.")
	case pgerr.IsTransient(err):
		log(slog.LevelWarn, "the database cannot be reached")
		f = fault.New(fault.Unavailable, "The service cannot reach its database. Try again.")
		if s.command != "" {
			f.Message = "PostgreSQL does not answer. Try again."
		}
	default:
		log(slog.LevelError, "a request failed")
		f = fault.New(fault.Internal, "Internal error.")
		if s.command != "" { // the user has no other log
			f.Message = err.Error()
			if why, remedy := pgerr.Explain(err); why != "" {
				f.Message = why + " " + remedy
			}
		}
	}
	return f
}

// writeError responds with an error.
func (s *Server) writeError(a *answer, r *http.Request, err error) {
	f := s.Fault(r.Context(), err, "method", r.Method, "route", routeOf(r))
	if r.Method == http.MethodPost && f.Code == fault.Unavailable && fault.From(err) == nil && !pgerr.IsDiskFull(err) {
		// The commit may have reached the database, and only its reply is lost.
		f.Message += " The request may have taken effect; with an Idempotency-Key it is safe to repeat."
	}
	if a.status == 0 {
		s.writeFault(a, r, f)
	}
}

// writeFault writes a fault.
func (s *Server) writeFault(a *answer, r *http.Request, f *fault.Error) {
	if s.errorPage != nil {
		s.errorPage(a, r, f)
		return
	}
	failure := FailureOf(f)
	body := struct {
		Error     any    `json:"error"`
		RequestID string `json:"request_id"`
	}{failure, a.id}
	if s.nullParams && failure.Param == "" {
		body.Error = struct {
			Failure
			Param *string `json:"param"`
		}{Failure: failure}
	}
	h := a.Header()
	if failure.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(failure.RetryAfter))
	}
	if c := authChallenge(f); c != "" {
		h.Set("WWW-Authenticate", c)
	}
	h.Set("Cache-Control", "no-store")
	h.Del("ETag")
	if err := WriteJSON(a, f.Code.Status(), body); err != nil {
		s.Log.ErrorContext(r.Context(), "encode an error", "code", f.Code, "err", err)
		a.WriteHeader(http.StatusInternalServerError)
	}
}

// authChallenge returns the WWW-Authenticate header of an error, or "".
func authChallenge(f *fault.Error) string {
	const realm = `Bearer realm="parley"`
	switch f.Code {
	case fault.MissingAPIKey:
		return realm
	case fault.InvalidAPIKey:
		return realm + `, error="invalid_token"`
	case fault.InsufficientScope:
		return `Bearer error="insufficient_scope", scope="` + f.Detail.RequiredScope + `"`
	}
	return ""
}
