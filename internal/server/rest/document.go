package rest

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
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

// openapi is the route table: a path that it does not name is not served, and every operation in it
// must have a handler, here or in the package of the protocol that x-served-by names.
//
//go:embed openapi.yaml
var openapi []byte

// operation is one entry of the route table.
type operation struct {
	ID         string          `yaml:"operationId"`
	ServedBy   string          `yaml:"x-served-by"` // the protocol that has the handler; "": this package
	Scope      apikey.Scope    `yaml:"x-scope"`
	Class      ratelimit.Class `yaml:"x-limit"` // rate class of a request; default calls
	Parameters []parameter     `yaml:"parameters"`

	path   string
	method string
	params []string // allowed query parameters
	handle handler
}

// parameter is a parameter as far as the route table needs it.
type parameter struct {
	Ref   string `yaml:"$ref"`
	Name  string `yaml:"name"`
	In    string `yaml:"in"`
	Style string `yaml:"style"`
}

// public reports whether the operation needs no key.
func (op *operation) public() bool { return op.Scope == "none" }

// document is the served OpenAPI document.
type document struct {
	json []byte
	etag string
}

// load parses the document and binds its operations to handlers. Its error lists all mistakes.
func load(source []byte, cfg server.Config, handlers map[string]handler) (document, []*operation, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(source, &root); err != nil {
		return document{}, nil, fmt.Errorf("parse the OpenAPI document: %w", err)
	}
	var table struct {
		Paths      map[string]map[string]yaml.Node `yaml:"paths"`
		Components struct {
			Parameters map[string]parameter `yaml:"parameters"`
		} `yaml:"components"`
	}
	if err := root.Decode(&table); err != nil {
		return document{}, nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	var ops []*operation
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
			op := &operation{path: path, method: strings.ToUpper(method), Class: ratelimit.Calls}
			if err := node.Decode(op); err != nil {
				wrong = append(wrong, fmt.Errorf("%s %s: %w", op.method, path, err))
				continue
			}
			for _, p := range append(op.Parameters, shared...) {
				if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
					p = table.Components.Parameters[name]
				}
				if p.Style == "deepObject" {
					p.Name += anyKey
				}
				if p.In == "query" {
					op.params = append(op.params, p.Name)
				}
			}
			op.handle = handlers[op.ID]
			switch {
			case op.handle != nil && op.ServedBy != "":
				wrong = append(wrong, fmt.Errorf("%s %s: operation %q has a handler here, and %s serves it", op.method, path, op.ID, op.ServedBy))
			case op.handle == nil && op.ServedBy == "":
				wrong = append(wrong, fmt.Errorf("%s %s: no handler for operation %q", op.method, path, op.ID))
			case bound[op.ID]:
				wrong = append(wrong, fmt.Errorf("%s %s: operation %q is there twice", op.method, path, op.ID))
			case !op.public() && !op.Scope.Known():
				wrong = append(wrong, fmt.Errorf("%s %s: unknown x-scope %q", op.method, path, op.Scope))
			case op.Class != ratelimit.Messages && op.Class != ratelimit.Calls:
				wrong = append(wrong, fmt.Errorf("%s %s: unknown x-limit %q", op.method, path, op.Class))
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
		return document{}, nil, fmt.Errorf("the OpenAPI document and the handlers differ: %w", err)
	}
	doc, err := encodeDocument(&root, cfg)
	return doc, ops, err
}

// Document returns the OpenAPI document in JSON, as this configuration serves it.
func Document(cfg server.Config) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(openapi, &root); err != nil {
		return nil, fmt.Errorf("parse the OpenAPI document: %w", err)
	}
	doc, err := encodeDocument(&root, cfg)
	return doc.json, err
}

// encodeDocument sets the values of the configuration and encodes the document.
func encodeDocument(root *yaml.Node, cfg server.Config) (document, error) {
	set(root, cfg.Version, "info", "version")
	if cfg.BaseURL != "" {
		set(root, strings.TrimSuffix(cfg.BaseURL, "/"), "servers", "0", "url") // clients append paths to it unchanged
	}
	for name, value := range documentLimits(cfg) {
		set(root, value, "x-limits", name)
	}
	var buf bytes.Buffer
	if err := writeNode(&buf, root); err != nil {
		return document{}, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	sum := sha256.Sum256(buf.Bytes())
	return document{json: buf.Bytes(), etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}, nil
}

// methods are the methods of operations. HEAD and OPTIONS are implicit.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

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

// getOpenAPI returns the document. It needs no key and no database.
func (s *api) getOpenAPI(w http.ResponseWriter, r *apiRequest) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	if err := r.query().Err(); err != nil {
		return err
	}
	h := w.Header()
	h.Set("ETag", s.document.etag)
	h.Set("Cache-Control", "public, no-cache")
	if matches(r.Header.Values("If-None-Match"), s.document.etag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	server.WriteBody(w, http.StatusOK, s.document.json)
	return nil
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
