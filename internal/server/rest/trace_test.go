package rest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/otlptest"
	"github.com/parley-server/parley/internal/tracing"
	"github.com/parley-server/parley/internal/turn"
)

func tracerOf(t *testing.T, r *otlptest.Receiver) *tracing.Tracer {
	t.Helper()
	tracer, err := tracing.New(t.Context(), func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL}[name]
	}, tracing.Options{})
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

// TestOneMessageIsOneTrace sends a message with a call that needs an approval to a replica without
// workers; another replica runs it. The spans of both are one tree below the client's own span.
func TestOneMessageIsOneTrace(t *testing.T) {
	t.Parallel()
	r := otlptest.New(t)
	front, back := tracerOf(t, r), tracerOf(t, r)
	s := process(t, dbtest.New(t), nil, func(c *server.Config) { c.Tracer = front }, func(c *turn.Config) {
		asking(time.Minute)(c)
		c.Workers, c.Tracer = 0, front
	})
	s.replica(t, func(c *turn.Config) {
		asking(time.Minute)(c)
		c.Tracer = back
	})
	st := s.open(t, call{method: "POST", path: "messages", body: body(t, "@call gate {\"word\":\"MARKER\"}\n@say MARKER"),
		header: []string{"Accept", "text/event-stream", "X-Request-Id", "req_trace", "Traceparent",
			"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}})
	q := st.asked()
	s.decide(t, q.DecideURL, allow)
	s.Gate.Leave <- struct{}{}
	st.rest()

	const route = "POST /api/v1/workspaces/{id}/messages"
	request, agent := r.Await(t, route, 1)[0], r.Await(t, "invoke_agent default", 1)[0]
	if request.Parent != "b7ad6b7169203331" || request.Attrs["http.response.status_code"] != int64(200) ||
		request.Attrs["parley.request.id"] != "req_trace" || agent.Parent != request.ID {
		t.Errorf("%+v\n%+v", request, agent)
	}
	chats, tools, waits := r.Await(t, "chat guide", 2), r.Await(t, "execute_tool gate", 1), r.Await(t, "wait approval", 1)
	for _, span := range append(append(chats, tools...), waits...) {
		if span.Parent != agent.ID || span.Trace != "0af7651916cd43dd8448eb211c80319c" ||
			span.Resource["service.instance.id"] == request.Resource["service.instance.id"] || span.End < span.Start {
			t.Errorf("%+v", span)
		}
	}
	for name, want := range map[string]any{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "builtin",
		"gen_ai.request.model": "guide", "gen_ai.conversation.id": agent.Attrs["gen_ai.conversation.id"]} {
		if chats[0].Attrs[name] != want {
			t.Errorf("%s is %v", name, chats[0].Attrs[name])
		}
	}
	for _, name := range []string{"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.response.finish_reasons",
		"gen_ai.response.time_to_first_chunk"} {
		if chats[0].Attrs[name] == nil {
			t.Errorf("%s is missing in %v", name, chats[0].Attrs)
		}
	}
	if a := waits[0].Attrs; a["parley.wait.outcome"] != "allowed" || a["parley.approval.id"] != q.ApprovalID {
		t.Errorf("%v", a)
	}
	if a := tools[0].Attrs; a["gen_ai.tool.name"] != "gate" || a["gen_ai.tool.call.id"] == nil || a["parley.tool.outcome"] != "ok" {
		t.Errorf("%v", a)
	}
	for _, span := range r.Spans() {
		if text := fmt.Sprint(span); strings.Contains(text, "MARKER") || strings.Contains(text, s.Key) {
			t.Errorf("content in %s", text)
		}
	}
}
