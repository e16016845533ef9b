package openai

import (
	"encoding/json"
	"slices"
	"strings"
)

// The limits of strict schemas.
const (
	maxStrictDepth = 10
	maxStrictEnum  = 1000
)

// strictWords are the keywords that strict schemas may contain.
var strictWords = []string{
	"$schema", "$ref", "$defs", "definitions", "title", "description", "type", "enum", "const", "anyOf",
	"properties", "required", "additionalProperties", "items", "minItems", "maxItems", "pattern", "format",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
}

var strictFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// isStrict reports whether OpenAI can guarantee that a reply fits a schema: it supports only some
// keywords, and requires every object to be closed and every member to be required.
func isStrict(schema json.RawMessage) bool {
	var document any
	return json.Unmarshal(schema, &document) == nil && strictAt(document, maxStrictDepth)
}

func strictAt(document any, depth int) bool {
	s, ok := document.(map[string]any)
	if !ok || depth == 0 {
		return false
	}
	said := false
	for name, value := range s {
		if !slices.Contains(strictWords, name) || !strictWord(name, value, depth) {
			return false
		}
		switch name {
		case "$ref": // it must be the only keyword
			return len(s) == 1
		case "type", "enum", "const", "anyOf":
			said = true
		}
	}
	properties, object := s["properties"].(map[string]any)
	if !object {
		return said && !strings.Contains(typeOf(s), "object")
	}
	required, _ := s["required"].([]any)
	for name := range properties {
		if !slices.Contains(required, any(name)) {
			return false
		}
	}
	return said && s["additionalProperties"] == false
}

// typeOf returns the type of a schema, or all types.
func typeOf(s map[string]any) string {
	data, err := json.Marshal(s["type"])
	if err != nil { // the value was decoded from JSON
		return ""
	}
	return string(data)
}

// strictWord checks the value of a keyword.
func strictWord(name string, value any, depth int) bool {
	switch name {
	case "properties", "$defs", "definitions":
		members, ok := value.(map[string]any)
		for _, m := range members {
			ok = ok && strictAt(m, depth-1)
		}
		return ok
	case "items":
		return strictAt(value, depth)
	case "anyOf":
		list, ok := value.([]any)
		for _, s := range list {
			ok = ok && strictAt(s, depth)
		}
		return ok
	case "enum":
		list, ok := value.([]any)
		return ok && len(list) <= maxStrictEnum
	case "pattern":
		s, ok := value.(string)
		return ok && !strings.Contains(s, "(?")
	case "format":
		s, ok := value.(string)
		return ok && slices.Contains(strictFormats, s)
	}
	return true
}
