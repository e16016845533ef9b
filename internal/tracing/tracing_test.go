package tracing_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/testing/otlptest"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// env returns an environment with these variables.
func env(pairs ...string) func(string) string {
	vars := make(map[string]string)
	for i := 0; i < len(pairs); i += 2 {
		vars[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return vars[name] }
}

func start(t *testing.T, opt tracing.Options, pairs ...string) *tracing.Tracer {
	t.Helper()
	tracer, err := tracing.New(t.Context(), env(pairs...), opt)
	if err != nil || tracer == nil {
		t.Fatalf("%v, %v", tracer, err)
	}
	t.Cleanup(func() { flush(t, tracer) })
	return tracer
}

func flush(t *testing.T, tracer *tracing.Tracer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer cancel()
	if err := tracer.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

func TestVariablesDecide(t *testing.T) {
	t.Parallel()
	const at = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for _, pairs := range [][]string{
		{}, {at, " "}, {"OTEL_SERVICE_NAME", "x"}, {at, "http://127.0.0.1:1", "OTEL_SDK_DISABLED", "true"},
		{at, "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER", "none"},
	} {
		if tracer, err := tracing.New(t.Context(), env(pairs...), tracing.Options{}); err != nil || tracer != nil {
			t.Errorf("%v: %v, %v", pairs, tracer, err)
		}
	}
	for _, c := range []struct{ name, value, want string }{
		{at, "collector:4318", "http or https"},
		{"OTEL_TRACES_EXPORTER", "zipkin", "OTEL_TRACES_EXPORTER"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "milliseconds"},
		{"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", "gzip"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=1,hush", "entry 2"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/does/not/exist", "OTEL_EXPORTER_OTLP_CERTIFICATE"},
	} {
		_, err := tracing.New(t.Context(), env(at, "http://127.0.0.1:1", c.name, c.value), tracing.Options{})
		if c.name == at {
			_, err = tracing.New(t.Context(), env(at, c.value), tracing.Options{})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
		}
	}
}

// TestSpansArrive exports with headers and compression, and continues the trace of a request.
func TestSpansArrive(t *testing.T) {
	t.Parallel()
	r := otlptest.New(t)
	tracer := start(t, tracing.Options{Version: "v9"}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", r.URL+"/v1/traces",
		"OTEL_EXPORTER_OTLP_HEADERS", "x-team=a%20b,authorization=Bearer%20t", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "gzip")
	const sender = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ctx, span := tracer.StartServer(t.Context(), http.Header{"Traceparent": {sender}}, "GET /x")
	span.Set(slog.Int("n", 1), slog.String("s", "x"), slog.String("empty", ""), slog.Any("l", []string{"a"}),
		slog.Duration("d", 1500*time.Millisecond), slog.Bool("b", true))
	here := tracing.Traceparent(ctx)
	turn := uuid.Must(uuid.NewV7())
	inTurn, _ := tracing.Start(tracing.ContinueTurn(ctx, here, turn), "chat", tracing.Client)
	_, child := tracing.Start(inTurn, "inner", tracing.Internal)
	child.Fail("timeout")
	child.End()
	tracing.StartTurn(ctx, here, turn, "invoke_agent", time.Now().Add(-time.Minute)).End()
	span.End()
	if _, none := tracing.Start(tracing.ContinueTurn(ctx, "", turn), "chat", tracing.Client); none != nil {
		t.Error("a turn without a trace begins one")
	}
	flush(t, tracer)

	byName := make(map[string]otlptest.Span)
	for _, s := range r.Spans() {
		byName[s.Name] = s
		if s.Trace != "0af7651916cd43dd8448eb211c80319c" || s.Schema != "https://opentelemetry.io/schemas/1.41.0" ||
			s.Resource["service.name"] != "parley" || s.Resource["service.version"] != "v9" {
			t.Errorf("%+v", s)
		}
	}
	server, agent, inner := byName["GET /x"], byName["invoke_agent"], byName["inner"]
	if server.Parent != "b7ad6b7169203331" || server.Kind != "SPAN_KIND_SERVER" || agent.Parent != server.ID ||
		agent.End-agent.Start < uint64(time.Minute) || !inner.Failed || inner.Attrs["error.type"] != "timeout" {
		t.Errorf("%+v", byName)
	}
	if a := server.Attrs; a["n"] != int64(1) || a["s"] != "x" || a["d"] != 1.5 || a["b"] != true || a["l"].([]any)[0] != "a" || len(a) != 5 {
		t.Errorf("%v", a)
	}
	if h := r.Headers()[0]; h.Get("X-Team") != "a b" || h.Get("Authorization") != "Bearer t" || h.Get("Content-Encoding") != "gzip" {
		t.Errorf("%v", h)
	}
}

// TestSilentReceiverHoldsNothingUp exports to a receiver that never answers, and to one that is gone.
func TestSilentReceiverHoldsNothingUp(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(release) })
	for _, url := range []string{silent.URL, "http://127.0.0.1:1"} {
		var out log
		tracer := start(t, tracing.Options{Log: slog.New(slog.NewTextHandler(&out, nil))}, "OTEL_EXPORTER_OTLP_ENDPOINT", url+"/",
			"OTEL_EXPORTER_OTLP_TIMEOUT", "200",
			"OTEL_EXPORTER_OTLP_HEADERS", "authorization=hush")
		ctx := tracer.Attach(t.Context())
		wait.Until(t, "the spans", func() {
			for range 20_000 { // ten times as many as may wait
				_, span := tracing.Start(ctx, "x", tracing.Internal)
				span.End()
			}
		})
		flush(t, tracer)
		if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "export traces: failed") ||
			strings.Contains(text, "hush") {
			t.Errorf("%s: the log is\n%s", url, text)
		}
	}
}

type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// TestTemporaryFailureIsRetried rejects the first request.
func TestTemporaryFailureIsRetried(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if n++; n == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(srv.Close)
	var out log
	tracer := start(t, tracing.Options{Log: slog.New(slog.NewTextHandler(&out, nil))}, "OTEL_EXPORTER_OTLP_ENDPOINT", srv.URL)
	_, span := tracing.Start(tracer.Attach(t.Context()), "x", tracing.Internal)
	span.End()
	flush(t, tracer)
	if n != 2 || out.String() != "" {
		t.Errorf("%d requests, log %q", n, out.String())
	}
}

// BenchmarkOff measures a span that nothing records.
func BenchmarkOff(b *testing.B) {
	var tracer *tracing.Tracer
	ctx := tracer.Attach(logContext(b.Context()))
	b.ReportAllocs()
	for b.Loop() {
		_, span := tracing.Start(ctx, "chat", tracing.Client)
		span.End()
		_ = tracing.TraceID(ctx)
	}
}

// BenchmarkOn measures a span that is recorded.
func BenchmarkOn(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	tracer, err := tracing.New(b.Context(), env("OTEL_EXPORTER_OTLP_ENDPOINT", srv.URL), tracing.Options{})
	if err != nil {
		b.Fatal(err)
	}
	ctx := tracer.Attach(logContext(b.Context()))
	b.ReportAllocs()
	for b.Loop() {
		_, span := tracing.Start(ctx, "chat", tracing.Client)
		span.Set(slog.String("gen_ai.operation.name", "chat"), slog.Int("n", 1))
		span.End()
	}
	_ = tracer.Shutdown(context.WithoutCancel(b.Context()))
}

type key int

// logContext returns a context as deep as that of a turn.
func logContext(ctx context.Context) context.Context {
	for i := range 6 {
		ctx = context.WithValue(ctx, key(i), i)
	}
	return ctx
}
