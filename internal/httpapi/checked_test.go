package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/parley-server/parley/internal/sse"
)

// apiDocument is the OpenAPI document as the service gives it out, made strict: a
// member that it does not name is a mistake here.
type apiDocument struct {
	*openapi3.T
	router routers.Router
	mu     sync.Mutex // the validator compiles schemas lazily
}

func loadDocument(t testing.TB, handler http.Handler) *apiDocument {
	t.Helper()
	rec := httptest.NewRecorder()
	handler.ServeHTTP(rec, httptest.NewRequest("GET", "/api/v1/openapi", nil))
	var tree map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &tree); err != nil {
		t.Fatal(err)
	}
	delete(tree, "servers")
	for _, schema := range tree["components"].(map[string]any)["schemas"].(map[string]any) {
		strict(schema)
	}
	data, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		t.Fatal(err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return &apiDocument{T: doc, router: router}
}

// strict forbids the members that a schema does not name.
func strict(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if _, ok := s["properties"].(map[string]any); ok {
			s["additionalProperties"] = false
		}
		for _, sub := range s {
			strict(sub)
		}
	case []any:
		for _, sub := range s {
			strict(sub)
		}
	}
}

// schema validates a value against a component.
func (d *apiDocument) schema(name string, value any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Components.Schemas[name].Value.VisitJSON(value, openapi3.EnableJSONSchema2020())
}

// frame validates a frame, and what its data holds.
func (d *apiDocument) frame(frame map[string]any) error {
	if err := d.schema("StreamFrame", frame); err != nil {
		return err
	}
	var data any
	if err := json.Unmarshal([]byte(frame["data"].(string)), &data); err != nil {
		return err
	}
	for _, f := range d.Components.Schemas["StreamFrame"].Value.OneOf {
		if slices.Contains(f.Value.Properties["event"].Value.Enum, frame["event"]) {
			d.mu.Lock()
			defer d.mu.Unlock()
			return f.Value.Properties["data"].Value.ContentSchema.Value.VisitJSON(data, openapi3.EnableJSONSchema2020())
		}
	}
	return fmt.Errorf("there is no event %q", frame["event"])
}

// webhook validates a request that a callback got.
func (d *apiDocument) webhook(name string, header http.Header, body []byte) error {
	item := d.Webhooks[name]
	if item == nil {
		return fmt.Errorf("there is no webhook %q", name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range item.Post.Parameters {
		if err := p.Value.Schema.Value.VisitJSON(header.Get(p.Value.Name), openapi3.EnableJSONSchema2020()); err != nil {
			return fmt.Errorf("%s: %w", p.Value.Name, err)
		}
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return err
	}
	return item.Post.RequestBody.Value.Content["application/json"].Schema.Value.VisitJSON(value, openapi3.EnableJSONSchema2020())
}

// checked holds every answer against the document: status, code, headers, body,
// and each frame of a stream.
type checked struct {
	t    testing.TB
	next http.RoundTripper
	doc  *apiDocument
}

func (c *checked) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if id := res.Header.Get("X-Request-Id"); id == "" {
		c.t.Errorf("%s %s: %d without X-Request-Id", r.Method, r.URL, res.StatusCode)
	}
	streaming := strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")
	if streaming {
		res.Body = &frameChecker{checked: c, body: res.Body, name: r.Method + " " + r.URL.Path}
	} else {
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			return nil, err
		}
		res.Body = io.NopCloser(bytes.NewReader(body))
	}
	if err := c.check(r, res, streaming); err != nil {
		c.t.Errorf("%s %s: %d is not what the document says: %v", r.Method, r.URL, res.StatusCode, err)
	}
	return res, nil
}

func (c *checked) check(r *http.Request, res *http.Response, streaming bool) error {
	route, params, err := c.doc.router.FindRoute(r)
	if err != nil || r.Method == http.MethodOptions || res.StatusCode == http.StatusMethodNotAllowed {
		return c.unrouted(res)
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
		Status:                 res.StatusCode, Header: res.Header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: streaming},
	}
	if !streaming {
		body, _ := io.ReadAll(res.Body)
		res.Body = io.NopCloser(bytes.NewReader(body))
		input.Body = io.NopCloser(bytes.NewReader(body))
	}
	c.doc.mu.Lock()
	defer c.doc.mu.Unlock()
	return openapi3filter.ValidateResponse(context.Background(), input)
}

// unrouted checks the answers that belong to no operation.
func (c *checked) unrouted(res *http.Response) error {
	body, _ := io.ReadAll(res.Body)
	res.Body = io.NopCloser(bytes.NewReader(body))
	if ref := c.doc.Components.Responses["MethodNotAllowed"]; res.StatusCode == http.StatusMethodNotAllowed {
		for name, h := range ref.Value.Headers {
			if h.Value.Required && res.Header.Get(name) == "" {
				return fmt.Errorf("no %s", name)
			}
		}
	}
	if len(body) == 0 && (res.StatusCode == http.StatusNoContent || res.Request.Method == http.MethodHead) {
		return nil
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return fmt.Errorf("%q: %w", body, err)
	}
	return c.doc.schema("Error", value)
}

// frameChecker validates the frames of a stream as they are read.
type frameChecker struct {
	*checked
	body io.ReadCloser
	name string
	seen bytes.Buffer
}

func (f *frameChecker) Read(p []byte) (int, error) {
	n, err := f.body.Read(p)
	f.seen.Write(p[:n])
	if i := bytes.LastIndex(f.seen.Bytes(), []byte("\n\n")); i >= 0 {
		f.frames(f.seen.Next(i + 2))
	}
	return n, err
}

func (f *frameChecker) Close() error { return f.body.Close() }

func (f *frameChecker) frames(wire []byte) {
	if bytes.ContainsRune(wire, '\r') {
		f.t.Errorf("%s: a carriage return in %q", f.name, wire)
	}
	r := sse.NewReader(bytes.NewReader(wire))
	for {
		fr, err := r.Next()
		if err != nil {
			return
		}
		frame := map[string]any{"event": fr.Event, "id": fr.ID, "data": string(fr.Data)}
		if fr.Retry != 0 {
			frame["retry"] = float64(fr.Retry.Milliseconds())
		}
		if err := f.doc.frame(frame); err != nil {
			f.t.Errorf("%s: frame %s %s %s: %v", f.name, fr.Event, fr.ID, fr.Data, err)
		}
	}
}
