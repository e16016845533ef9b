// Package apicheck compares the responses of a service with the OpenAPI document that it serves,
// for the tests of every protocol. It checks responses only: many tests send invalid requests.
package apicheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// Document is the served OpenAPI document, made strict: a schema that lists properties and does not
// mention additionalProperties allows no others.
type Document struct {
	*openapi3.T
	router routers.Router
	mu     sync.Mutex // the validator compiles schemas lazily
}

// loaded are the documents of this process, by their text. Services in tests differ little in their
// configuration, and reading a document takes half a second with the race detector.
var loaded struct {
	sync.Mutex
	byText map[string]*Document
}

// Load reads the document from the handler that serves it. Tests share documents, so none changes
// one.
func Load(t testing.TB, handler http.Handler) *Document {
	t.Helper()
	rec := httptest.NewRecorder()
	handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/api/v1/openapi", nil))
	text := rec.Body.String()
	loaded.Lock()
	defer loaded.Unlock()
	if d := loaded.byText[text]; d != nil {
		return d
	}
	d, err := parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if loaded.byText == nil {
		loaded.byText = make(map[string]*Document)
	}
	loaded.byText[text] = d
	return d
}

func parse(text []byte) (*Document, error) {
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	delete(tree, "servers")
	for _, schema := range tree["components"].(map[string]any)["schemas"].(map[string]any) {
		makeStrict(schema)
	}
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		return nil, err
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, err
	}
	return &Document{T: doc, router: router}, nil
}

// makeStrict forbids the members that a schema does not name.
func makeStrict(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		_, closed := s["properties"].(map[string]any)
		if _, said := s["additionalProperties"]; closed && !said {
			s["additionalProperties"] = false
		}
		for _, sub := range s {
			makeStrict(sub)
		}
	case []any:
		for _, sub := range s {
			makeStrict(sub)
		}
	}
}

// visit validates a value. The caller holds mu.
func visit(schema *openapi3.Schema, value any) error {
	return schema.VisitJSON(value, openapi3.EnableJSONSchema2020())
}

// CheckSchema validates a value against a component.
func (d *Document) CheckSchema(name string, value any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return visit(d.Components.Schemas[name].Value, value)
}

// CheckFrame validates a frame of the service's own streams, and its data.
func (d *Document) CheckFrame(frame map[string]any) error {
	return d.checkFrame(d.Components.Schemas["StreamFrame"].Value, frame)
}

// checkFrame validates a frame and its data against one of the frames that a schema describes: the
// one with the frame's event, or any of them if no schema names that event.
func (d *Document) checkFrame(schema *openapi3.Schema, frame map[string]any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	kinds := []*openapi3.Schema{schema}
	if refs := slices.Concat(schema.OneOf, schema.AnyOf); len(refs) > 0 {
		kinds = nil
		for _, ref := range refs {
			kinds = append(kinds, ref.Value)
		}
	}
	if i := slices.IndexFunc(kinds, func(k *openapi3.Schema) bool { return namesEvent(k, frame["event"]) }); i >= 0 {
		kinds = kinds[i : i+1]
	}
	var all []error
	for _, kind := range kinds {
		err := visitFrame(kind, frame)
		if err == nil {
			return nil
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

func namesEvent(kind *openapi3.Schema, event any) bool {
	named := kind.Properties["event"]
	return named != nil && slices.Contains(named.Value.Enum, event)
}

func visitFrame(kind *openapi3.Schema, frame map[string]any) error {
	if err := visit(kind, frame); err != nil {
		return err
	}
	content := kind.Properties["data"].Value.ContentSchema
	if content == nil {
		return nil
	}
	var data any
	if err := json.Unmarshal([]byte(frame["data"].(string)), &data); err != nil {
		return err
	}
	return visit(content.Value, data)
}

// CheckWebhook validates a request that a callback received.
func (d *Document) CheckWebhook(name string, header http.Header, body []byte) error {
	item := d.Webhooks[name]
	if item == nil {
		return fmt.Errorf("there is no webhook %q", name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range item.Post.Parameters {
		if err := visit(p.Value.Schema.Value, header.Get(p.Value.Name)); err != nil {
			return fmt.Errorf("%s: %w", p.Value.Name, err)
		}
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return err
	}
	return visit(item.Post.RequestBody.Value.Content["application/json"].Schema.Value, value)
}
