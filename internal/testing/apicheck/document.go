// Package apicheck compares the responses of a service with the OpenAPI document that it serves,
// for the tests of every protocol. It checks responses only: many tests send invalid requests.
package apicheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Document is the served OpenAPI document, made strict: a schema that lists properties and does not
// mention additionalProperties allows no others.
type Document struct {
	*openapi3.T
	router routers.Router

	mu        sync.Mutex
	compiler  *jsonschema.Compiler
	resources int // schemas that the compiler has
	compiled  map[*openapi3.Schema]*jsonschema.Schema
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
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource(documentURL, map[string]any{"components": tree["components"]}); err != nil {
		return nil, err
	}
	compiled := make(map[*openapi3.Schema]*jsonschema.Schema)
	return &Document{T: doc, router: router, compiler: compiler, compiled: compiled}, nil
}

// documentURL is the address of the document for the compiler of schemas. Nothing is loaded from it.
const documentURL = "mem:///document"

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

// visit validates a value.
func (d *Document) visit(schema *openapi3.Schema, value any) error {
	compiled, err := d.compile(schema)
	if err != nil {
		return fmt.Errorf("compile the schema: %w", err)
	}
	return compiled.Validate(value)
}

// compile compiles a schema of the document, once: kin-openapi would do so for each value.
func (d *Document) compile(schema *openapi3.Schema) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if done := d.compiled[schema]; done != nil {
		return done, nil
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(bytes.ReplaceAll(text, []byte(`"$ref":"#/`), []byte(`"$ref":"`+documentURL+`#/`))))
	if err != nil {
		return nil, err
	}
	d.resources++
	url := fmt.Sprintf("mem:///%d", d.resources)
	if err := d.compiler.AddResource(url, tree); err != nil {
		return nil, err
	}
	done, err := d.compiler.Compile(url)
	if err != nil {
		return nil, err
	}
	d.compiled[schema] = done
	return done, nil
}

// checkResponse validates the status, the headers and the content type of a response, and its body
// unless that is nil.
func (d *Document) checkResponse(op *openapi3.Operation, status int, header http.Header, body []byte) error {
	ref := op.Responses.Status(status)
	if ref == nil {
		ref = op.Responses.Default()
	}
	if ref == nil {
		return fmt.Errorf("the operation has no status %d", status)
	}
	for name, h := range ref.Value.Headers {
		switch values := header.Values(name); {
		case len(values) > 0:
			if err := d.visitText(h.Value.Schema.Value, values[0]); err != nil {
				return fmt.Errorf("the header %s: %w", name, err)
			}
		case h.Value.Required:
			return fmt.Errorf("the response has no header %s", name)
		}
	}
	if len(ref.Value.Content) == 0 {
		return nil
	}
	kind := header.Get("Content-Type")
	media := ref.Value.Content.Get(kind)
	if media == nil {
		return fmt.Errorf("the operation has no content type %q for this status", kind)
	}
	if body == nil || media.Schema == nil {
		return nil
	}
	return d.visitText(media.Schema.Value, string(body))
}

// visitText validates a text: as JSON, unless the schema is that of a string.
func (d *Document) visitText(schema *openapi3.Schema, text string) error {
	if schema.Type.Is("string") {
		return d.visit(schema, text)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return d.visit(schema, value)
}

// CheckSchema validates a value against a component.
func (d *Document) CheckSchema(name string, value any) error {
	return d.visit(d.Components.Schemas[name].Value, value)
}

// CheckFrame validates a frame of the service's own streams, and its data.
func (d *Document) CheckFrame(frame map[string]any) error {
	return d.checkFrame(d.Components.Schemas["StreamFrame"].Value, frame)
}

// checkFrame validates a frame and its data against one of the frames that a schema describes: the
// one with the frame's event, or any of them if no schema names that event.
func (d *Document) checkFrame(schema *openapi3.Schema, frame map[string]any) error {
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
		err := d.visitFrame(kind, frame)
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

func (d *Document) visitFrame(kind *openapi3.Schema, frame map[string]any) error {
	if err := d.visit(kind, frame); err != nil {
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
	return d.visit(content.Value, data)
}

// CheckWebhook validates a request that a callback received.
func (d *Document) CheckWebhook(name string, header http.Header, body []byte) error {
	item := d.Webhooks[name]
	if item == nil {
		return fmt.Errorf("there is no webhook %q", name)
	}
	for _, p := range item.Post.Parameters {
		if err := d.visit(p.Value.Schema.Value, header.Get(p.Value.Name)); err != nil {
			return fmt.Errorf("%s: %w", p.Value.Name, err)
		}
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return err
	}
	return d.visit(item.Post.RequestBody.Value.Content["application/json"].Schema.Value, value)
}
