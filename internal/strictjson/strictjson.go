// Package strictjson reads JSON in the one way that cannot be read differently elsewhere: a
// member's name is matched exactly, a name stands once in its object, and nothing follows the
// value. encoding/json takes "COMMAND" for "command" and the last of two equal names, so two
// readers of one text can see different values.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deep a value may be nested.
const MaxDepth = 64

// Unmarshal parses data into the value that into points to. Members that into does not have are
// ignored. The error is an *Error.
func Unmarshal(data []byte, into any) error { return unmarshal(data, into) }

// UnmarshalKnown is Unmarshal, but a member that into does not have is an error.
func UnmarshalKnown(data []byte, into any) error {
	return unmarshal(data, into, jsonv2.RejectUnknownMembers(true))
}

func unmarshal(data []byte, into any, opts ...jsonv2.Options) error {
	if _, err := Canonical(data); err != nil {
		return err
	}
	// The text is checked; half of a surrogate pair becomes U+FFFD, as in encoding/json.
	opts = append(opts, jsontext.AllowInvalidUTF8(true))
	return errorOf(jsonv2.Unmarshal(data, into, opts...))
}

// Canonical returns the canonical form of a JSON value: compact, every string with the fewest
// escapes, numbers and the order of members as they were written. NUL and halves of surrogate
// pairs, which PostgreSQL cannot store, become U+FFFD. The error is an *Error.
func Canonical(data []byte) (json.RawMessage, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowInvalidUTF8(true))
	var out bytes.Buffer
	out.Grow(len(data))
	enc := jsontext.NewEncoder(&out) // refuses a name that stands twice only after its replacements, too
	for whole := false; ; whole = dec.StackDepth() == 0 {
		tok, err := dec.ReadToken()
		if whole && errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errorOf(err)
		}
		if whole {
			return nil, &Error{Problem: Syntax, err: errors.New("something follows the value")}
		}
		if dec.StackDepth() > MaxDepth {
			return nil, &Error{Problem: Deep, Pointer: string(dec.StackPointer())}
		}
		if tok.Kind() == '"' {
			tok = jsontext.String(strings.ReplaceAll(tok.String(), "\x00", "\uFFFD"))
		}
		if err := enc.WriteToken(tok); err != nil {
			return nil, errorOf(err)
		}
	}
	return json.RawMessage(bytes.TrimSuffix(out.Bytes(), []byte("\n"))), nil
}

// Limits bound the content of a JSON text.
type Limits struct {
	Members int // members of one object
	Values  int // names of members and elements of arrays in the whole text
}

// CheckLimits checks that no name stands twice in one object of a JSON text, and that the text
// keeps the limits. The error is an *Error.
func CheckLimits(data []byte, l Limits) error {
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowInvalidUTF8(true))
	for more := 0; ; { // values besides the first of each object and array
		tok, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errorOf(err)
		}
		depth := dec.StackDepth()
		switch tok.Kind() {
		case '}', ']':
			continue
		case '{', '[':
			depth--
		}
		in, n := dec.StackIndex(depth)
		if in == '{' && n%2 == 0 {
			continue // the value of a member, whose name was counted
		}
		if in == '{' && n > 2*int64(l.Members) {
			return &Error{Problem: Members}
		}
		if n > 1 {
			more++
		}
		if more >= l.Values {
			return &Error{Problem: Values}
		}
	}
}

// IsText reports whether a well-formed JSON string is text: without NUL, and without half of a
// surrogate pair.
func IsText(raw []byte) bool {
	text, err := jsontext.AppendUnquote(nil, raw)
	return err == nil && bytes.IndexByte(text, 0) < 0
}
