package mcptool_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/testing/otlptest"
	"github.com/parley-server/parley/internal/tracing"
)

// TestTraceGoesToTheToolServer checks the member of a call's _meta that a tool server gets.
func TestTraceGoesToTheToolServer(t *testing.T) {
	t.Parallel()
	tracer, err := tracing.New(t.Context(), func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": otlptest.New(t).URL}[name]
	}, tracing.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tracer.Shutdown(context.Background()) })
	w := newWorld(t, served(func(s *mcp.Server) {
		mcp.AddTool(s, &mcp.Tool{Name: "find"}, func(_ context.Context, req *mcp.CallToolRequest, _ question) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("trace=%v",
				req.Params.Meta["traceparent"])}}}, nil, nil
		})
	}))
	w.add(t, crm)
	x := w.tools(t, w.run(t))["crm__find"]
	ctx := tracing.ContinueTurn(tracer.Attach(t.Context()), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", uuid.Must(uuid.NewV7()))
	if got := call(t, ctx, x, `{"name":"x"}`); !strings.Contains(got.Output, "trace=00-0af7651916cd43dd8448eb211c80319c-") {
		t.Errorf("%+v", got)
	}
	if got := call(t, t.Context(), x, `{"name":"x"}`); !strings.Contains(got.Output, "trace=<nil>") {
		t.Errorf("without a trace: %+v", got)
	}
}
