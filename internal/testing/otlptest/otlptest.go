// Package otlptest runs a receiver of traces over OTLP/HTTP for tests.
//
// It promises: it decodes every request as the protocol defines it, and fails the test if one is not
// valid.
package otlptest

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/parley-server/parley/internal/testing/wait"
)

// Receiver is a running receiver.
type Receiver struct {
	URL string // the endpoint, without the path of traces

	mu      sync.Mutex
	spans   []Span
	headers []http.Header
}

// Span is a span that was received.
type Span struct {
	Name, Kind, Trace, ID, Parent string
	Start, End                    uint64 // Unix nanoseconds
	Failed                        bool
	Attrs                         map[string]any // string, int64, float64, bool, []any
	Resource                      map[string]any
	Schema                        string
}

// New starts a receiver.
func New(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if err := r.receive(req); err != nil || req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s, %s: %v", req.Method, req.URL.Path, req.Header.Get("Content-Type"), err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(srv.Close)
	r.URL = srv.URL
	return r
}

func (r *Receiver) receive(req *http.Request) error {
	body := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		small, err := gzip.NewReader(req.Body)
		if err != nil {
			return err
		}
		body = small
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var all trace.TracesData // the wire format of a request
	if err := proto.Unmarshal(data, &all); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.headers = append(r.headers, req.Header)
	for _, resource := range all.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				r.spans = append(r.spans, Span{
					Name: s.Name, Kind: s.Kind.String(), Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId),
					Parent: hex.EncodeToString(s.ParentSpanId),
					Start:  s.StartTimeUnixNano, End: s.EndTimeUnixNano, Failed: s.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR,
					Attrs: values(s.Attributes), Resource: values(resource.GetResource().GetAttributes()), Schema: scope.SchemaUrl,
				})
			}
		}
	}
	return nil
}

func values(list []*common.KeyValue) map[string]any {
	out := make(map[string]any, len(list))
	for _, kv := range list {
		out[kv.Key] = value(kv.Value)
	}
	return out
}

func value(v *common.AnyValue) any {
	switch v := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_IntValue:
		return v.IntValue
	case *common.AnyValue_DoubleValue:
		return v.DoubleValue
	case *common.AnyValue_BoolValue:
		return v.BoolValue
	case *common.AnyValue_ArrayValue:
		var list []any
		for _, item := range v.ArrayValue.GetValues() {
			list = append(list, value(item))
		}
		return list
	}
	return nil
}

// Spans returns the spans that have arrived, in the order of their beginnings.
func (r *Receiver) Spans() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	spans := slices.Clone(r.spans)
	slices.SortStableFunc(spans, func(a, b Span) int { return int(int64(a.Start) - int64(b.Start)) })
	return spans
}

// Headers returns the headers of the requests that have arrived.
func (r *Receiver) Headers() []http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.headers)
}

// Await returns the spans of a name once n of them have arrived.
func (r *Receiver) Await(t testing.TB, name string, n int) (found []Span) {
	t.Helper()
	wait.For(t, "spans "+name, func() bool {
		found = found[:0]
		for _, s := range r.Spans() {
			if s.Name == name {
				found = append(found, s)
			}
		}
		return len(found) >= n
	})
	return found
}
