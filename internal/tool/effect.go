package tool

import "context"

type withoutEffect struct{}

// WithoutEffect marks the requests of a context as parts of a handshake: they change nothing, so
// their records need not be durable before they leave.
func WithoutEffect(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutEffect{}, true)
}

// HasNoEffect reports whether WithoutEffect has marked a context.
func HasNoEffect(ctx context.Context) bool { return ctx.Value(withoutEffect{}) != nil }
