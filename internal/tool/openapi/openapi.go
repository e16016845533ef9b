// Package openapi turns operations of an OpenAPI 3 document into tools of an HTTP API.
//
// It promises: a tool sends exactly what its operation describes. An operation that needs more than
// path, query and a JSON body is refused with the reason. It fetches nothing: a document with
// references to other documents is refused.
package openapi

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/text"
)

// MaxDocument is the largest document, in bytes.
const MaxDocument = 4 << 20

// Refusal is the reason why a document or an operation cannot be used, a sentence.
type Refusal string

// Error implements error.
func (r Refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return Refusal(fmt.Sprintf(format, args...)) }

// Document is an OpenAPI document.
type Document struct {
	doc        *openapi3.T
	operations map[string]operation // by operationId
}

type operation struct {
	*openapi3.Operation
	method, path string
	shared       openapi3.Parameters // of the path
}

// Parse parses a document in YAML or JSON. Its errors are a Refusal.
func Parse(raw []byte) (*Document, error) {
	if len(raw) > MaxDocument {
		return nil, refuse("The OpenAPI document is larger than %d MiB.", MaxDocument>>20)
	}
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		if wrong := brokenRef(raw); wrong != "" {
			return nil, Refusal(wrong)
		}
		return nil, refuse("The OpenAPI document cannot be read: %s", text.Truncate(oneLine(err), 300))
	}
	if doc.OpenAPIMajorMinor() == "" || !strings.HasPrefix(doc.OpenAPI, "3.") {
		return nil, refuse("The document is not OpenAPI 3.")
	}
	err = doc.Validate(context.Background(), openapi3.DisableExamplesValidation(), openapi3.DisableSchemaDefaultsValidation(),
		openapi3.DisableSchemaPatternValidation())
	if err != nil {
		if wrong := brokenRef(raw); wrong != "" {
			return nil, Refusal(wrong)
		}
		return nil, refuse("The OpenAPI document is not valid: %s", text.Truncate(oneLine(err), 300))
	}
	d := &Document{doc, make(map[string]operation)}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.OperationID != "" {
				d.operations[op.OperationID] = operation{op, method, path, item.Parameters}
			}
		}
	}
	return d, nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// Operations returns the operationIds, by name.
func (d *Document) Operations() []string { return slices.Sorted(maps.Keys(d.operations)) }

// Server returns the address of the first server, or "" if the document has no absolute one.
func (d *Document) Server() string {
	if len(d.doc.Servers) == 0 {
		return ""
	}
	u, err := url.Parse(d.doc.Servers[0].URL)
	if err != nil || u.Host == "" || strings.Contains(d.doc.Servers[0].URL, "{") {
		return ""
	}
	return strings.TrimSuffix(u.String(), "/")
}

// Tool returns the tool of an operation. headers are those that every request has. Its error is a
// Refusal.
func (d *Document) Tool(id string, headers map[string]string) (t toolset.HTTPTool, err error) {
	op, ok := d.operations[id]
	if !ok {
		return t, refuse("The document has no operation %.100q.", id)
	}
	if op.Servers != nil && len(*op.Servers) > 0 {
		return t, refuse("It has servers of its own, and an entry has one address.")
	}
	b := &builder{doc: d.doc, headers: headers, in: make(map[string]toolset.Place), properties: make(map[string]any),
		defs: make(map[string]any)}
	for _, p := range parametersOf(op) {
		if err := b.addParameter(p); err != nil {
			return t, err
		}
	}
	if err := b.addBody(op); err != nil {
		return t, err
	}
	t.Name, t.Title, t.Description = id, op.Summary, descriptionOf(op)
	t.Annotations.ReadOnly = op.method == http.MethodGet
	t.HTTP = &toolset.Request{Method: op.method, Path: op.path, In: b.in}
	t.Schema, err = b.encode()
	return t, err
}

// parametersOf returns the parameters of an operation, which replace those of its path.
func parametersOf(op operation) (list []*openapi3.Parameter) {
	for _, ref := range op.Parameters {
		list = append(list, ref.Value)
	}
	for _, ref := range op.shared {
		if !slices.ContainsFunc(list, func(p *openapi3.Parameter) bool { return p.Name == ref.Value.Name && p.In == ref.Value.In }) {
			list = append(list, ref.Value)
		}
	}
	return list
}

func descriptionOf(op operation) string {
	parts := slices.DeleteFunc([]string{strings.TrimSpace(op.Summary), strings.TrimSpace(op.Description)},
		func(s string) bool { return s == "" })
	if len(parts) == 0 {
		return op.method + " " + op.path
	}
	return text.Prefix(strings.Join(slices.Compact(parts), "\n\n"), toolset.MaxDescription)
}
