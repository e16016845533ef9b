// Package logging makes the logger of the service. Its handler adds the ids of the request and of the
// recorded trace in the context to every line, and summarizes a warning that is repeated.
//
// It promises that a storm of one message, or of all warnings about a lost database, costs a few lines
// a minute, and that no line is lost without being counted. It never changes the text of a line, so
// callers keep secrets out of it.
package logging

import (
	"context"
	"log/slog"

	"github.com/parley-server/parley/internal/tracing"
)

// Wrap returns a logger that writes the lines of handler, with the ids of the context and without
// repetitions.
func Wrap(inner slog.Handler) *slog.Logger {
	return slog.New(handler{inner, &repeats{emit: inner, seen: make(map[message]*repeated)}})
}

type handler struct {
	slog.Handler
	repeats *repeats
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn && !h.repeats.admit(r) {
		return nil
	}
	if id := RequestID(ctx); id != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("request", id))
	}
	if id := tracing.TraceID(ctx); id != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.repeats}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.repeats}
}

type requestKey struct{}

// WithRequestID returns a context whose lines have the id of a request; "": none.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// RequestID returns the id of the request in the context, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}
