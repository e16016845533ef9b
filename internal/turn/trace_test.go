package turn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/origin"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/otlptest"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tracing"
	"github.com/parley-server/parley/internal/turn"
)

// gate is a tool that holds its calls.
type gate struct{ entered, leave chan struct{} }

func (g *gate) Spec() tool.Spec {
	return tool.Spec{Name: "gate", Schema: json.RawMessage(`{"type":"object"}`), Idempotent: true}
}

func (g *gate) Call(ctx context.Context, _ tool.Call) (tool.Result, error) {
	g.entered <- struct{}{}
	select {
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	case <-g.leave:
		return tool.Result{OK: true, Output: "open MARKER-OUT"}, nil
	}
}

// tracerOf returns a tracer that exports to r.
func tracerOf(t *testing.T, r *otlptest.Receiver, content string) *tracing.Tracer {
	t.Helper()
	vars := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": content}
	tracer, err := tracing.New(t.Context(), func(name string) string { return vars[name] }, tracing.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tracer.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return tracer
}

// TestTurnKeepsItsTraceOnAnotherReplica stops a worker in the middle of a tool call. The worker that
// takes the turn continues its trace, and its span is recorded once. Only the second worker captures
// content.
func TestTurnKeepsItsTraceOnAnotherReplica(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("unused"))
	w.model = builtin.New()
	g := &gate{make(chan struct{}, 2), make(chan struct{}, 2)}
	w.tools = []tool.Tool{g}
	first, second := otlptest.New(t), otlptest.New(t)
	a := w.replica(t, func(c *turn.Config) { c.Tracer, c.Grace = tracerOf(t, first, ""), time.Nanosecond })
	const sender = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ctx := origin.With(t.Context(), origin.Origin{RequestID: "req_1", Traceparent: sender})
	st, err := a.turns.Start(ctx, turn.Request{Workspace: w.workspace, Command: "@call gate {\"word\":\"MARKER-IN\"}\n@say MARKER-TEXT"})
	if err != nil {
		t.Fatal(err)
	}
	wait.Receive(t, "the call", g.entered)
	b := w.replica(t, func(c *turn.Config) { c.Tracer = tracerOf(t, second, "true") })
	a.stop()
	wait.Receive(t, "the second call", g.entered)
	g.leave <- struct{}{}
	read(t, b, st)

	agent := second.Await(t, "invoke_agent default", 1)[0]
	second.Await(t, "chat guide", 1)
	first.Await(t, "execute_tool gate", 1)
	if agent.Parent != "b7ad6b7169203331" || agent.Attrs["parley.turn.attempts"] != int64(2) ||
		agent.Attrs["parley.turn.state"] != "completed" || agent.Attrs["gen_ai.conversation.id"] != st.Session.String() {
		t.Errorf("%+v", agent)
	}
	content := map[*otlptest.Receiver]string{}
	for _, r := range []*otlptest.Receiver{first, second} {
		names := make(map[string]int)
		for _, s := range r.Spans() {
			names[s.Name]++
			content[r] += fmt.Sprint(s.Attrs)
			if s.Trace != "0af7651916cd43dd8448eb211c80319c" || s.ID != agent.ID && s.Parent != agent.ID {
				t.Errorf("%s is elsewhere: %+v", s.Name, s)
			}
		}
		if names["chat guide"] != 1 || names["execute_tool gate"] != 1 {
			t.Errorf("spans: %v", names)
		}
	}
	if strings.Contains(content[first], "MARKER") {
		t.Errorf("content without its switch: %s", content[first])
	}
	for _, marker := range []string{"MARKER-IN", "MARKER-OUT", "MARKER-TEXT"} {
		if !strings.Contains(content[second], marker) {
			t.Errorf("%s is missing in %s", marker, content[second])
		}
	}
}
