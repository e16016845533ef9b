// Package document reads the OpenAPI document of the API: it is the table of routes, and it is
// served as JSON. It promises that operations and handlers fit each other, and that the members of
// the JSON have the order of the source.
package document

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
)

// Document is an OpenAPI document.
type Document struct{ root yaml.Node }

// Operation is one entry of the route table.
type Operation[H any] struct {
	ID         string          `yaml:"operationId"`
	ServedBy   string          `yaml:"x-served-by"` // the protocol that has the handler; "": the caller of Bind
	Scope      apikey.Scope    `yaml:"x-scope"`
	Class      ratelimit.Class `yaml:"x-limit"`         // rate class of a request; default calls
	Tokens     bool            `yaml:"x-browser-token"` // accepts browser tokens
	Parameters []parameter     `yaml:"parameters"`

	Path   string   `yaml:"-"`
	Method string   `yaml:"-"`
	Params []string `yaml:"-"` // allowed query parameters
	Handle H        `yaml:"-"`
}

// parameter is a parameter as far as the route table needs it.
type parameter struct {
	Ref   string `yaml:"$ref"`
	Name  string `yaml:"name"`
	In    string `yaml:"in"`
	Style string `yaml:"style"`
}

// Public reports whether the operation needs no key.
func (op *Operation[H]) Public() bool { return op.Scope == "none" }

// Parse parses a document.
func Parse(source []byte) (*Document, error) {
	d := &Document{}
	if err := yaml.Unmarshal(source, &d.root); err != nil {
		return nil, fmt.Errorf("parse the OpenAPI document: %w", err)
	}
	return d, nil
}

// Clone returns a copy that Set does not share.
func (d *Document) Clone() *Document { return &Document{root: *cloneNode(&d.root)} }

func cloneNode(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		c.Content[i] = cloneNode(child)
	}
	return &c
}

// Bind returns the operations of a document with their handlers. Its error lists all mistakes.
func Bind[H any](d *Document, handlers map[string]H) ([]*Operation[H], error) {
	var table struct {
		Paths      map[string]map[string]yaml.Node `yaml:"paths"`
		Components struct {
			Parameters map[string]parameter `yaml:"parameters"`
		} `yaml:"components"`
	}
	if err := d.root.Decode(&table); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	var ops []*Operation[H]
	var wrong []error
	bound := make(map[string]bool)
	for path, item := range table.Paths {
		var shared []parameter
		if node, ok := item["parameters"]; ok {
			if err := node.Decode(&shared); err != nil {
				wrong = append(wrong, fmt.Errorf("parameters of %s: %w", path, err))
			}
		}
		for method, node := range item {
			if !slices.Contains(methods, strings.ToUpper(method)) {
				continue // parameters, summary …
			}
			op := &Operation[H]{Path: path, Method: strings.ToUpper(method), Class: ratelimit.Calls}
			if err := node.Decode(op); err != nil {
				wrong = append(wrong, fmt.Errorf("%s %s: %w", op.Method, path, err))
				continue
			}
			for _, p := range append(op.Parameters, shared...) {
				if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
					p = table.Components.Parameters[name]
				}
				if p.Style == "deepObject" {
					p.Name += request.AnyKey
				}
				if p.In == "query" {
					op.Params = append(op.Params, p.Name)
				}
			}
			var handled bool
			op.Handle, handled = handlers[op.ID]
			switch {
			case handled && op.ServedBy != "":
				wrong = append(wrong, fmt.Errorf("%s %s: operation %q has a handler here, and %s serves it", op.Method, path, op.ID, op.ServedBy))
			case !handled && op.ServedBy == "":
				wrong = append(wrong, fmt.Errorf("%s %s: no handler for operation %q", op.Method, path, op.ID))
			case bound[op.ID]:
				wrong = append(wrong, fmt.Errorf("%s %s: operation %q is there twice", op.Method, path, op.ID))
			case !op.Public() && !op.Scope.Known():
				wrong = append(wrong, fmt.Errorf("%s %s: unknown x-scope %q", op.Method, path, op.Scope))
			case op.Class != ratelimit.Messages && op.Class != ratelimit.Calls:
				wrong = append(wrong, fmt.Errorf("%s %s: unknown x-limit %q", op.Method, path, op.Class))
			}
			bound[op.ID] = true
			if op.ServedBy == "" {
				ops = append(ops, op)
			}
		}
	}
	for id := range handlers {
		if !bound[id] {
			wrong = append(wrong, fmt.Errorf("handler %q has no operation", id))
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, fmt.Errorf("the OpenAPI document and the handlers differ: %w", err)
	}
	return ops, nil
}

// Encoded is a document in JSON.
type Encoded struct {
	JSON []byte
	etag string
}

// Encode encodes the document.
func (d *Document) Encode() (Encoded, error) {
	var buf bytes.Buffer
	if err := writeNode(&buf, &d.root); err != nil {
		return Encoded{}, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	sum := sha256.Sum256(buf.Bytes())
	return Encoded{buf.Bytes(), `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}, nil
}

// Write responds with the document, or reports that the client has it.
func (e Encoded) Write(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("ETag", e.etag)
	h.Set("Cache-Control", "public, no-cache")
	if matches(r.Header.Values("If-None-Match"), e.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	server.WriteBody(w, http.StatusOK, e.JSON)
}

// matches compares an If-None-Match header with an entity tag, weakly as required.
func matches(header []string, etag string) bool {
	for tag := range strings.SplitSeq(strings.Join(header, ","), ",") {
		if tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/"); tag == etag || tag == "*" {
			return true
		}
	}
	return false
}

// methods are the methods of operations. HEAD and OPTIONS are implicit.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// Set changes one scalar of the document.
func (d *Document) Set(value any, path ...string) { set(&d.root, value, path...) }

// set changes one scalar of the document.
func set(n *yaml.Node, value any, path ...string) {
	for n.Kind == yaml.DocumentNode {
		n = n.Content[0]
	}
	if len(path) == 0 {
		_ = n.Encode(value) // a string or a number cannot fail
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			if n.Content[i].Value == path[0] {
				set(n.Content[i+1], value, path[1:]...)
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(path[0]); err == nil && i < len(n.Content) {
			set(n.Content[i], value, path[1:]...)
		}
	}
}

// writeNode encodes a YAML node as JSON and keeps the order of its members.
func writeNode(w *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.DocumentNode:
		return writeNode(w, n.Content[0])
	case yaml.AliasNode:
		return writeNode(w, n.Alias)
	case yaml.MappingNode:
		w.WriteByte('{')
		for i := 0; i < len(n.Content); i += 2 {
			if i > 0 {
				w.WriteByte(',')
			}
			if err := writeValue(w, n.Content[i].Value); err != nil {
				return err
			}
			w.WriteByte(':')
			if err := writeNode(w, n.Content[i+1]); err != nil {
				return err
			}
		}
		w.WriteByte('}')
		return nil
	case yaml.SequenceNode:
		w.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				w.WriteByte(',')
			}
			if err := writeNode(w, item); err != nil {
				return err
			}
		}
		w.WriteByte(']')
		return nil
	case yaml.ScalarNode:
		var v any
		if err := n.Decode(&v); err != nil {
			return err
		}
		return writeValue(w, v)
	}
	return fmt.Errorf("line %d: no plain YAML", n.Line)
}

func writeValue(w *bytes.Buffer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	w.Truncate(w.Len() - 1) // the newline
	return nil
}
