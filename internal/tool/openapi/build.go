package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/parley-server/parley/internal/store/toolset"
)

// builder collects the input of a tool.
type builder struct {
	doc        *openapi3.T
	headers    map[string]string
	in         map[string]toolset.Place
	properties map[string]any
	required   []string
	defs       map[string]any // schemas that others refer to
}

// add adds a member of the input.
func (b *builder) add(name string, place toolset.Place, required bool, schema any) {
	b.in[name], b.properties[name] = place, schema
	if required {
		b.required = append(b.required, name)
	}
}

// ownHeaders are parameters that OpenAPI ignores.
var ownHeaders = []string{"accept", "content-type", "authorization"}

// addParameter adds a parameter of the path or the query. An optional header or cookie is left out.
func (b *builder) addParameter(p *openapi3.Parameter) error {
	place := toolset.Place(p.In)
	switch {
	case p.In == openapi3.ParameterInHeader && slices.Contains(ownHeaders, strings.ToLower(p.Name)):
		return nil
	case p.In == openapi3.ParameterInHeader || p.In == openapi3.ParameterInCookie:
		if p.Required && !b.hasHeader(p) {
			return refuse("It needs the %s %.80q, which the model cannot send. A header can be one of the headers of the entry.", p.In, p.Name)
		}
		return nil
	case p.Schema == nil:
		return refuse("Its parameter %.80q has a media type, which is not supported.", p.Name)
	case b.in[p.Name] != "":
		return refuse("It has two parameters %.80q.", p.Name)
	}
	kind := p.Schema.Value.Type
	switch {
	case kind.Includes("object"), len(p.Schema.Value.Properties) > 0, place == toolset.InPath && kind.Includes("array"):
		return refuse("Its parameter %.80q is an object or a list in the %s, which is not supported.", p.Name, p.In)
	case p.Style != "" && p.Style != map[toolset.Place]string{toolset.InPath: "simple", toolset.InQuery: "form"}[place],
		kind.Includes("array") && p.Explode != nil && !*p.Explode:
		return refuse("Its parameter %.80q is written in a style that is not supported.", p.Name)
	}
	schema, err := b.schema(p.Schema)
	if err != nil {
		return err
	}
	if m, ok := schema.(map[string]any); ok && p.Description != "" {
		m["description"] = p.Description
	}
	b.add(p.Name, place, p.Required, schema)
	return nil
}

func (b *builder) hasHeader(p *openapi3.Parameter) bool {
	for name := range b.headers {
		if p.In == openapi3.ParameterInHeader && strings.EqualFold(name, p.Name) {
			return true
		}
	}
	return false
}

// addBody adds a JSON body: the properties of a plain object, or one member for the whole body.
func (b *builder) addBody(op operation) error {
	if op.RequestBody == nil {
		return nil
	}
	body := op.RequestBody.Value
	content := jsonOf(body.Content)
	switch {
	case content == nil || content.Schema == nil:
		if body.Required {
			return refuse("Its body is not described as JSON.")
		}
		return nil
	case op.method == http.MethodGet:
		return refuse("It is a GET request with a body.")
	}
	if flat := content.Schema.Value; body.Required && b.isPlain(flat) {
		whole, err := b.schema(&openapi3.SchemaRef{Value: flat})
		if err != nil {
			return err
		}
		properties, _ := whole.(map[string]any)["properties"].(map[string]any)
		for name, schema := range properties {
			b.add(name, toolset.InBody, slices.Contains(flat.Required, name), schema)
		}
		return nil
	}
	if b.in["body"] != "" {
		return refuse("It has a parameter body beside its body.")
	}
	schema, err := b.schema(content.Schema)
	if err != nil {
		return err
	}
	b.add("body", toolset.WholeBody, body.Required, schema)
	return nil
}

// jsonOf returns the description of a JSON body, nil if there is none.
func jsonOf(content openapi3.Content) *openapi3.MediaType {
	for _, name := range []string{"application/json", "application/*", "*/*"} {
		if m := content[name]; m != nil {
			return m
		}
	}
	for name, m := range content {
		if kind, _, _ := strings.Cut(name, ";"); kind == "application/json" {
			return m
		}
	}
	return nil
}

// isPlain reports whether the properties of a body can be members of the input.
func (b *builder) isPlain(s *openapi3.Schema) bool {
	if !s.Type.Is("object") || len(s.Properties) == 0 || s.Nullable || len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) > 0 ||
		s.Not != nil || s.If != nil ||
		s.MinProps > 0 || s.MaxProps != nil || len(s.PatternProperties) > 0 || len(s.DependentSchemas)+len(s.DependentRequired) > 0 ||
		s.AdditionalProperties.Schema != nil || s.AdditionalProperties.Has != nil && *s.AdditionalProperties.Has {
		return false
	}
	for name := range s.Properties {
		if b.in[name] != "" {
			return false
		}
	}
	return true
}

// encode returns the schema of the input.
func (b *builder) encode() (json.RawMessage, error) {
	slices.Sort(b.required)
	root := map[string]any{"type": "object", "properties": b.properties, "additionalProperties": false}
	if len(b.required) > 0 {
		root["required"] = b.required
	}
	if len(b.defs) > 0 {
		root["$defs"] = b.defs
	}
	raw, err := json.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("encode the input of a tool: %w", err)
	}
	if len(raw) > toolset.MaxSchema {
		return nil, refuse("The schema of its input is larger than %d KiB.", toolset.MaxSchema>>10)
	}
	return raw, nil
}
