package strictjson

import (
	"errors"
	"fmt"
	"io"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Problem is a kind of error.
type Problem string

const (
	Syntax    Problem = "syntax"    // the text is not one JSON value
	Deep      Problem = "deep"      // it is nested deeper than MaxDepth
	Duplicate Problem = "duplicate" // a name stands twice in one object
	Unknown   Problem = "unknown"   // a member that the target does not have
	Type      Problem = "type"      // a value of another type
	Members   Problem = "members"   // an object has more than Limits.Members
	Values    Problem = "values"    // the text has more than Limits.Values
)

// Error describes a violation in a JSON text.
type Error struct {
	Problem Problem
	Pointer string // JSON Pointer of the value; "" is the whole
	Name    string // last token of Pointer: the member's name
	Want    string // for Type: the JSON type that is expected
	Got     string // for Type: the JSON type that was found
	err     error
}

// Error implements error.
func (e *Error) Error() string {
	switch e.Problem {
	case Deep:
		return fmt.Sprintf("the JSON is nested deeper than %d levels", MaxDepth)
	case Duplicate:
		return fmt.Sprintf("the name %q appears twice in one object", e.Name)
	case Unknown:
		return fmt.Sprintf("unknown member %q", e.Name)
	case Type:
		return fmt.Sprintf("%q must be a %s, not a %s", e.Name, e.Want, e.Got)
	case Members, Values:
		return fmt.Sprintf("the JSON has too many %s", e.Problem)
	}
	return fmt.Sprintf("the text is not JSON: %v", e.err)
}

// Unwrap returns the parser's error.
func (e *Error) Unwrap() error { return e.err }

// errorOf makes an *Error of the parser's error; nil of nil.
func errorOf(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	e := &Error{Problem: Syntax, err: err}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		e.Pointer, e.Name = string(syntax.JSONPointer), syntax.JSONPointer.LastToken()
		if errors.Is(syntax.Err, jsontext.ErrDuplicateName) {
			e.Problem = Duplicate
		}
	}
	if semantic, ok := errors.AsType[*jsonv2.SemanticError](err); ok {
		e.Pointer, e.Name = string(semantic.JSONPointer), semantic.JSONPointer.LastToken()
		e.Problem, e.Want, e.Got = Type, typeName(semantic.GoType), kindName(semantic.JSONKind)
		if errors.Is(semantic.Err, jsonv2.ErrUnknownName) {
			e.Problem = Unknown
		}
	}
	return e
}

// typeName is the JSON type that a Go type is read from.
func typeName(t reflect.Type) string {
	if t == nil {
		return "value"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Map, reflect.Struct:
		return "object"
	case reflect.Float32, reflect.Float64:
		return "number"
	default:
		return "whole number"
	}
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '"':
		return "string"
	case '0':
		return "number"
	case 't', 'f':
		return "boolean"
	case '{', '}':
		return "object"
	case '[', ']':
		return "array"
	}
	return "null"
}
