// Package schema validates JSON against JSON Schemas from untrusted sources. It accepts the output
// of pydantic and zod, in drafts 07, 2019-09 and 2020-12. It rejects, with place and reason,
// schemas that it could not check correctly, safely and quickly: keywords it would have to ignore,
// references that leave the document or form a cycle, patterns and combinations that cost too much.
//
// It never fetches anything and keeps no state between schemas. No schema and no value makes it
// panic or run long: a value that takes too many steps does not fit.
package schema

import (
	"encoding/json"
	"fmt"
	"strings"
)

const (
	// MaxSize is the maximum length of a schema, in bytes.
	MaxSize = 64 << 10
	// MaxDepth is the maximum nesting of objects and arrays in its document.
	MaxDepth = 32
	// maxWeight is the maximum number of subschemas for one place of a value.
	maxWeight = 10_000
)

// The limits of checking one value.
const (
	maxValueSize  = 1 << 20 // bytes
	maxValueDepth = 200
	maxSteps      = 1_000_000
	maxFrames     = 10_000 // nesting of subschemas while checking
	maxViolations = 100
)

// Schema is a JSON Schema that passed these checks. It is safe for concurrent use.
type Schema struct {
	raw   json.RawMessage
	root  *node
	nodes []*node
}

// Error is the reason why a schema is rejected.
type Error struct {
	Path   string // JSON pointer to the place in the schema, "" is the whole schema
	Reason string // a sentence
}

func (e *Error) Error() string {
	if e.Path == "" {
		return e.Reason
	}
	return e.Path + ": " + e.Reason
}

// newError returns an *Error.
func newError(path, format string, args ...any) error {
	return &Error{Path: path, Reason: fmt.Sprintf(format, args...)}
}

// Compile compiles a schema. Its errors are *Error.
func Compile(raw json.RawMessage) (*Schema, error) {
	if len(raw) > MaxSize {
		return nil, newError("", "The schema is longer than %d bytes.", MaxSize)
	}
	document, bad := decodeJSON(raw, MaxDepth)
	if bad != nil {
		return nil, bad
	}
	if _, ok := document.(map[string]any); !ok {
		return nil, newError("", "A schema is a JSON object.")
	}
	c := &compiler{nodes: map[string]*node{}}
	root, err := c.compileNode(document, "")
	if err != nil {
		return nil, err
	}
	if err := c.linkReferences(); err != nil {
		return nil, err
	}
	return &Schema{raw: raw, root: root, nodes: c.order}, nil
}

// Raw returns the schema as it was passed to Compile.
func (s *Schema) Raw() json.RawMessage { return s.raw }

// Violation is one violation of a schema by a value.
type Violation struct {
	Path    string // JSON pointer to the place in the value, "" is the whole value
	Message string
}

// Validate checks one JSON value, and returns nil if it fits. Numbers are compared
// as double precision, the way most programs read JSON. Invalid JSON, duplicate members, very large
// values and values that take too many steps do not fit.
func (s *Schema) Validate(instance json.RawMessage) []Violation {
	if len(instance) > maxValueSize {
		return []Violation{{"", fmt.Sprintf("The value is longer than %d bytes.", maxValueSize)}}
	}
	value, bad := decodeJSON(instance, maxValueDepth)
	if bad != nil {
		return []Violation{{bad.Path, bad.Reason}}
	}
	r := &run{steps: maxSteps}
	findings := r.checkValue(s.root, value, nil, nil)
	if r.exhausted {
		return []Violation{{"", "The value takes too many steps to check."}}
	}
	var violations []Violation
	for _, f := range findings {
		violations = append(violations, Violation{f.at.String(), f.message})
	}
	return violations
}

// Misfit describes for a model why an input does not fit, "" if it fits.
func (s *Schema) Misfit(input json.RawMessage) string {
	var problems []string
	for _, v := range s.Validate(input) {
		problems = append(problems, strings.TrimSpace(v.Path+" "+v.Message))
	}
	if len(problems) == 0 {
		return ""
	}
	return "The input does not fit the tool's schema:\n- " + strings.Join(problems, "\n- ") + "\nCall the tool again."
}
