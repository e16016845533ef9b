package server

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/mux"

	"github.com/parley-server/parley/internal/server/request"
)

// access is what the handlers of a request know about it, for its line in the log.
type access struct {
	mu            sync.Mutex
	key           string // id of the key, or of the signed-in user
	session, turn uuid.UUID
}

type accessKey struct{}

// withAccess returns a context whose request is described by the returned access.
func withAccess(ctx context.Context) (context.Context, *access) {
	a := &access{}
	return context.WithValue(ctx, accessKey{}, a), a
}

// noteCaller records the key, or the signed-in user, of the request in the context.
func noteCaller(ctx context.Context, key string) {
	if a, ok := ctx.Value(accessKey{}).(*access); ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.key = key
	}
}

// noteTurn records the turn that the request in the context started.
func noteTurn(ctx context.Context, session, turn uuid.UUID) {
	if a, ok := ctx.Value(accessKey{}).(*access); ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.session, a.turn = session, turn
	}
}

// logRequest logs a request that has ended. Health probes are too frequent for the usual level.
func (s *Server) logRequest(a *answer, r *http.Request, about *access, began time.Time) {
	level, route := slog.LevelInfo, routeOf(r)
	if isProbe(route) {
		level = slog.LevelDebug
	}
	took := time.Since(began)
	s.Metrics.Requests.WithLabelValues(route, methodLabel(r.Method), strconv.Itoa(a.status)).Inc()
	if !strings.HasPrefix(a.Header().Get("Content-Type"), request.StreamType) {
		s.Metrics.RequestTime.WithLabelValues(route).Observe(took.Seconds())
	}
	about.mu.Lock()
	defer about.mu.Unlock()
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs, slog.String("method", r.Method), slog.String("route", route), slog.Int("status", a.status),
		slog.Int64("bytes", a.bytes), slog.Duration("duration", took.Round(time.Microsecond)))
	if about.key != "" {
		attrs = append(attrs, slog.String("key", about.key))
	}
	session := about.session
	if session == uuid.Nil {
		session, _ = uuid.Parse(mux.Vars(r)["sessionId"])
	}
	if session != uuid.Nil {
		attrs = append(attrs, slog.Any("session", session))
	}
	if about.turn != uuid.Nil {
		attrs = append(attrs, slog.Any("turn", about.turn))
	}
	s.Log.LogAttrs(r.Context(), level, "request", attrs...)
}

func isProbe(route string) bool { return route == "/healthz" || route == "/readyz" }

// methodLabel returns the method of a request for the metrics: a client can send any word.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// unmatched is the route of requests for paths that do not exist.
const unmatched = "unmatched"

// routeOf returns the pattern of the request's path. The path itself can hold a signature.
func routeOf(r *http.Request) string {
	if route := mux.CurrentRoute(r); route != nil {
		return route.GetName()
	}
	return unmatched
}
