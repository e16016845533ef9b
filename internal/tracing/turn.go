package tracing

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The span of a turn lasts from the message to the end of the turn, longer than any worker has it. So
// no process holds it open: its id is a part of the turn's id, workers on all replicas begin their
// spans below this id, and the process that ends the turn records the span as a whole.

// ContinueTurn returns a context whose spans are below that of a turn. traceparent is the place of the
// request that sent the message; without one the turn is in no trace.
func ContinueTurn(ctx context.Context, traceparent string, turn uuid.UUID) context.Context {
	if _, ok := ctx.Value(scopeKey{}).(scope); !ok {
		return ctx
	}
	sender := trace.SpanContextFromContext(extract(traceparent))
	if !sender.IsValid() {
		return context.WithValue(ctx, scopeKey{}, nil) // a turn without a trace begins none
	}
	return trace.ContextWithRemoteSpanContext(ctx, sender.WithSpanID(spanOf(turn)))
}

// StartTurn returns the span of a turn that has ended, which the caller ends at once; nil if nothing
// is recorded.
func StartTurn(ctx context.Context, traceparent string, turn uuid.UUID, name string, began time.Time) *Span {
	sender := trace.SpanContextFromContext(extract(traceparent))
	if !sender.IsValid() {
		return nil
	}
	ctx = context.WithValue(trace.ContextWithRemoteSpanContext(ctx, sender), spanKey{}, spanOf(turn))
	_, span := start(ctx, name, trace.WithTimestamp(began))
	return span
}

// StartAt begins a span at an earlier time.
func StartAt(ctx context.Context, name string, began time.Time) *Span {
	_, span := start(ctx, name, trace.WithTimestamp(began))
	return span
}

func extract(traceparent string) context.Context {
	return w3c.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
}

// spanOf returns the id of a turn's span. The second half of a UUID is random but for two bits.
func spanOf(turn uuid.UUID) (id trace.SpanID) {
	copy(id[:], turn[8:])
	return id
}

type spanKey struct{}

// ids makes the ids of traces and spans. The context can choose that of a turn's span.
type ids struct{}

// NewIDs implements sdk.IDGenerator.
func (ids) NewIDs(ctx context.Context) (id trace.TraceID, _ trace.SpanID) {
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], 1+rand.Uint64N(1<<64-1))
	return id, ids{}.NewSpanID(ctx, id)
}

// NewSpanID implements sdk.IDGenerator.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) (id trace.SpanID) {
	if id, ok := ctx.Value(spanKey{}).(trace.SpanID); ok {
		return id
	}
	binary.NativeEndian.PutUint64(id[:], 1+rand.Uint64N(1<<64-1))
	return id
}
