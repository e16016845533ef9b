package tracing

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Kind is the role of a span.
type Kind = trace.SpanKind

// The kinds of spans.
const (
	Internal = trace.SpanKindInternal
	Server   = trace.SpanKindServer
	Client   = trace.SpanKindClient
)

// Span is an operation that is being recorded. A nil Span records nothing.
type Span struct {
	span    trace.Span
	content bool
}

// scope is what a context carries: who records its spans, and whether they may have content.
type scope struct {
	*Tracer
	content bool
}

type scopeKey struct{}

// w3c reads and writes traceparent and tracestate.
var w3c propagation.TraceContext

// Attach returns a context whose spans t records.
func (t *Tracer) Attach(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	return context.WithValue(ctx, scopeKey{}, scope{t, t.content})
}

// WithoutContent returns a context whose spans have no content.
func WithoutContent(ctx context.Context) context.Context {
	s, ok := ctx.Value(scopeKey{}).(scope)
	if !ok || !s.content {
		return ctx
	}
	return context.WithValue(ctx, scopeKey{}, scope{s.Tracer, false})
}

// StartServer begins the span of a request, in the trace that the request names.
func (t *Tracer) StartServer(ctx context.Context, h http.Header, name string) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	return Start(t.Attach(w3c.Extract(ctx, propagation.HeaderCarrier(h))), name, Server)
}

// Start begins a span, a child of the one in the context. It returns nil if nothing is recorded, so
// that callers can leave out what only the span needs.
func Start(ctx context.Context, name string, kind Kind) (context.Context, *Span) {
	if _, ok := ctx.Value(scopeKey{}).(scope); !ok { // before the options, which allocate
		return ctx, nil
	}
	return start(ctx, name, trace.WithSpanKind(kind))
}

func start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, *Span) {
	s, ok := ctx.Value(scopeKey{}).(scope)
	if !ok {
		return ctx, nil
	}
	ctx, span := s.tracer.Start(ctx, name, options...)
	if !span.IsRecording() {
		return ctx, nil
	}
	return ctx, &Span{span, s.content}
}

// HasContent reports whether the span may have messages, arguments and results.
func (s *Span) HasContent() bool { return s != nil && s.content }

// Set sets attributes. Those with an empty text are left out.
func (s *Span) Set(attrs ...slog.Attr) {
	if s == nil {
		return
	}
	for _, a := range attrs {
		switch a.Value.Kind() {
		case slog.KindInt64:
			s.span.SetAttributes(attribute.Int64(a.Key, a.Value.Int64()))
		case slog.KindFloat64:
			s.span.SetAttributes(attribute.Float64(a.Key, a.Value.Float64()))
		case slog.KindBool:
			s.span.SetAttributes(attribute.Bool(a.Key, a.Value.Bool()))
		case slog.KindDuration:
			s.span.SetAttributes(attribute.Float64(a.Key, a.Value.Duration().Seconds()))
		default:
			if list, ok := a.Value.Any().([]string); ok {
				s.span.SetAttributes(attribute.StringSlice(a.Key, list))
			} else if text := a.Value.String(); text != "" {
				s.span.SetAttributes(attribute.String(a.Key, text))
			}
		}
	}
}

// Fail records that the operation failed. The class of the failure is a word such as timeout.
func (s *Span) Fail(class string) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attribute.String("error.type", class))
	s.span.SetStatus(codes.Error, "")
}

// Rename changes the name of the span.
func (s *Span) Rename(name string) {
	if s != nil {
		s.span.SetName(name)
	}
}

// End ends the span.
func (s *Span) End() {
	if s != nil {
		s.span.End()
	}
}

// EndAt ends the span at an earlier time.
func (s *Span) EndAt(ended time.Time) {
	if s != nil {
		s.span.End(trace.WithTimestamp(ended))
	}
}

// Inject writes the trace of the context into the headers of a request, for receivers that the
// workspace itself has named.
func Inject(ctx context.Context, h http.Header) { w3c.Inject(ctx, propagation.HeaderCarrier(h)) }

// Traceparent returns the place of the context in its trace, in the format of W3C; "": none.
func Traceparent(ctx context.Context) string {
	carrier := make(propagation.MapCarrier, 2)
	w3c.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// TraceID returns the id of the context's trace, or "" if it is not recorded.
func TraceID(ctx context.Context) string {
	if sc := trace.SpanContextFromContext(ctx); sc.IsSampled() {
		return sc.TraceID().String()
	}
	return ""
}
