package callback_test

import (
	"context"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/testing/otlptest"
	"github.com/parley-server/parley/internal/tracing"
)

// TestDeliveryIsInTheTraceOfItsTurn checks the span of an attempt, and the header that the receiver
// gets. The address of the receiver is in no attribute.
func TestDeliveryIsInTheTraceOfItsTurn(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), otlptest.New(t)
	tracer, err := tracing.New(t.Context(), func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL}[name]
	}, tracing.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.receiver.status(500)
	n := w.register(t, address, nil)
	w.exec(t, `INSERT INTO turns (id, session_id, workspace_id, state, max_response_seconds, max_turns, origin)
		VALUES ($1, $2, $3, 'completed', 60, 9, '{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}')`, n.Turn,
		n.Session, n.Workspace)
	if _, _, err := w.store.Deliver(tracer.Attach(t.Context()), w.report(t, n.Turn, callback.Completed, 1), job, answer); err != nil {
		t.Fatal(err)
	}
	if err := tracer.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	span := r.Await(t, "deliver callback", 1)[0]
	if span.Parent != hex.EncodeToString(n.Turn[8:]) || !span.Failed || span.Attrs["error.type"] != "bad_status" ||
		span.Attrs["http.response.status_code"] != int64(500) {
		t.Errorf("%+v", span)
	}
	if got := w.receiver.all()[0].header.Get("Traceparent"); got != "00-"+span.Trace+"-"+span.ID+"-01" {
		t.Errorf("the receiver gets %q", got)
	}
	for name, value := range span.Attrs {
		if text, ok := value.(string); ok && strings.Contains(text, "hush") {
			t.Errorf("%s is %s", name, text)
		}
	}
}
