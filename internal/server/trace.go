package server

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/tracing"
)

// startSpan begins the span of a request. Probes and the files of the web application have none.
func (s *Server) startSpan(ctx context.Context, r *http.Request) (context.Context, *tracing.Span) {
	route := routeOf(r)
	if s.Tracer == nil || isProbe(route) || strings.HasPrefix(route, "/static/") {
		return ctx, nil
	}
	name := methodLabel(r.Method)
	if route != unmatched {
		name += " " + route
	}
	return s.Tracer.StartServer(ctx, r.Header, name)
}

// endSpan ends the span of a request. Paths are left out, as in the log: they can hold signatures.
func (s *Server) endSpan(span *tracing.Span, a *answer, r *http.Request, about *access) {
	if span == nil {
		return
	}
	about.mu.Lock()
	defer about.mu.Unlock()
	span.Set(slog.String("http.request.method", methodLabel(r.Method)), slog.String("parley.request.id", a.id))
	if route := routeOf(r); route != unmatched {
		span.Set(slog.String("http.route", route))
	}
	if about.turn != uuid.Nil {
		span.Set(slog.String("gen_ai.conversation.id", about.session.String()), slog.String("parley.turn.id", about.turn.String()))
	}
	switch {
	case a.status == 0: // the connection broke before the response
		span.Fail("aborted")
	case a.status >= http.StatusInternalServerError:
		span.Fail(strconv.Itoa(a.status))
		fallthrough
	default:
		span.Set(slog.Int("http.response.status_code", a.status))
	}
	span.End()
}
