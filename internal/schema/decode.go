package schema

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/parley-server/parley/internal/text"
)

// place is a place in a document, as a path from the inside out.
type place struct {
	up   *place // nil is the whole document
	name string
}

func (p *place) in(name string) *place { return &place{p, name} }
func (p *place) at(i int) *place       { return &place{p, strconv.Itoa(i)} }

// String returns the JSON pointer.
func (p *place) String() string {
	var s string
	for ; p != nil; p = p.up {
		s = pointerStep(p.name) + s
	}
	return s
}

// pointerStep is one step of a JSON pointer.
func pointerStep(name string) string { return "/" + text.PointerToken(name) }

// decodeJSON decodes one JSON value. It rejects duplicate member names, because parsers disagree
// about which one counts.
func decodeJSON(raw []byte, depth int) (any, *Error) {
	if !json.Valid(raw) {
		return nil, &Error{Reason: "This is not valid JSON."}
	}
	d := decoder{json.NewDecoder(bytes.NewReader(raw))}
	return d.decodeValue(nil, depth)
}

type decoder struct{ *json.Decoder }

func (d decoder) decodeValue(at *place, depth int) (any, *Error) {
	token, err := d.Token()
	if err != nil { // the text is valid JSON, so only a number can be wrong
		return nil, &Error{at.String(), "This number is out of range."}
	}
	switch token := token.(type) {
	case json.Delim:
		if depth == 0 {
			return nil, &Error{at.String(), "This is nested too deeply."}
		}
		if token == '{' {
			return d.decodeObject(at, depth-1)
		}
		return d.decodeArray(at, depth-1)
	case float64:
		return token + 0, nil // -0 is 0
	default:
		return token, nil
	}
}

func (d decoder) decodeObject(at *place, depth int) (any, *Error) {
	members := map[string]any{}
	for d.More() {
		token, err := d.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, &Error{at.String(), "This is not valid JSON."}
		}
		if _, twice := members[name]; twice {
			return nil, &Error{at.in(name).String(), "This name is there twice."}
		}
		value, bad := d.decodeValue(at.in(name), depth)
		if bad != nil {
			return nil, bad
		}
		members[name] = value
	}
	_, _ = d.Token() // the closing brace
	return members, nil
}

func (d decoder) decodeArray(at *place, depth int) (any, *Error) {
	items := []any{}
	for d.More() {
		value, bad := d.decodeValue(at.at(len(items)), depth)
		if bad != nil {
			return nil, bad
		}
		items = append(items, value)
	}
	_, _ = d.Token() // the closing bracket
	return items, nil
}
