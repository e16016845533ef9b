package httptool_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/testing/otlptest"
	"github.com/parley-server/parley/internal/tracing"
)

// TestTraceGoesToTheServerOfATool checks the header that the server of a tool gets.
func TestTraceGoesToTheServerOfATool(t *testing.T) {
	t.Parallel()
	tracer, err := tracing.New(t.Context(), func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": otlptest.New(t).URL}[name]
	}, tracing.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tracer.Shutdown(context.Background()) })
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, "trace=%s", r.Header.Get("Traceparent"))
	}))
	x := w.tools(t, erp, define("get", "GET", "/x", `{}`))["get"]
	ctx := tracing.ContinueTurn(tracer.Attach(t.Context()), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", uuid.Must(uuid.NewV7()))
	res, err := w.call(t, ctx, x, "call_1", `{}`)
	if err != nil || !strings.Contains(res.Output, "trace=00-0af7651916cd43dd8448eb211c80319c-") {
		t.Errorf("%+v, %v", res, err)
	}
	if res, err = w.call(t, t.Context(), x, "call_2", `{}`); err != nil || strings.Contains(res.Output, "trace=0") {
		t.Errorf("without a trace: %+v, %v", res, err)
	}
}
