package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// The keywords that contain schemas.
var (
	oneSchema = []string{"not", "if", "then", "else", "items", "additionalProperties", "contains", "propertyNames",
		"unevaluatedProperties", "contentSchema"}
	listSchemas = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	mapSchemas  = []string{"properties", "patternProperties", "dependentSchemas"}
)

// annotations are keywords of OpenAPI that say nothing about the value.
var annotations = []string{"example", "examples", "externalDocs", "xml", "discriminator", "readOnly", "writeOnly", "$schema",
	"$comment", "allowEmptyValue"}

const components = "#/components/schemas/"

// schema returns a schema as JSON Schema.
func (b *builder) schema(ref *openapi3.SchemaRef) (any, error) {
	raw, err := json.Marshal(ref)
	if err != nil {
		return nil, fmt.Errorf("encode a schema: %w", err)
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, fmt.Errorf("read a schema: %w", err)
	}
	return tree, b.convert(tree)
}

// convert turns a schema of OpenAPI into JSON Schema, in place.
func (b *builder) convert(tree any) error {
	s, ok := tree.(map[string]any)
	if !ok {
		return nil // true or false
	}
	for _, name := range annotations {
		delete(s, name)
	}
	maps.DeleteFunc(s, func(name string, _ any) bool { return strings.HasPrefix(name, "x-") })
	dropReadOnly(s)
	convertNull(s)
	convertBounds(s)
	if ref, ok := s["$ref"].(string); ok {
		if err := b.define(s, ref); err != nil {
			return err
		}
	}
	for _, sub := range subSchemas(s) {
		if err := b.convert(sub); err != nil {
			return err
		}
	}
	return nil
}

// subSchemas returns the schemas in a schema.
func subSchemas(s map[string]any) (list []any) {
	for _, name := range oneSchema {
		if s[name] != nil {
			list = append(list, s[name])
		}
	}
	for _, name := range listSchemas {
		more, _ := s[name].([]any)
		list = append(list, more...)
	}
	for _, name := range mapSchemas {
		more, _ := s[name].(map[string]any)
		list = slices.AppendSeq(list, maps.Values(more))
	}
	return list
}

// define makes a reference one to $defs.
func (b *builder) define(s map[string]any, ref string) error {
	name, ok := strings.CutPrefix(ref, components)
	target := b.doc.Components
	if !ok || strings.ContainsAny(name, "/~%") || target == nil || target.Schemas[name] == nil {
		return refuse("Its schemas refer to %.100q, and only references to %s are supported.", ref, components)
	}
	s["$ref"] = "#/$defs/" + name
	if _, done := b.defs[name]; done {
		return nil
	}
	b.defs[name] = true // ends recursion
	def, err := b.schema(target.Schemas[name])
	b.defs[name] = def
	return err
}

// dropReadOnly removes the properties that only responses have.
func dropReadOnly(s map[string]any) {
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for name, p := range properties {
		if m, ok := p.(map[string]any); ok && m["readOnly"] == true {
			delete(properties, name)
			required = slices.DeleteFunc(required, func(r any) bool { return r == name })
		}
	}
	if s["required"] != nil {
		s["required"] = required
	}
}

// convertNull replaces nullable of OpenAPI 3.0.
func convertNull(s map[string]any) {
	if kind, ok := s["type"].(string); ok && s["nullable"] == true {
		s["type"] = []any{kind, "null"}
		if values, ok := s["enum"].([]any); ok && !slices.Contains(values, nil) {
			s["enum"] = append(values, nil)
		}
	}
	delete(s, "nullable")
}

// convertBounds replaces exclusive bounds of OpenAPI 3.0, which are true or false.
func convertBounds(s map[string]any) {
	for exclusive, bound := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		switch s[exclusive] {
		case true:
			s[exclusive] = s[bound]
			delete(s, bound)
		case false:
			delete(s, exclusive)
		}
	}
}
