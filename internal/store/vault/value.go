package vault

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"unicode/utf8"
)

// hidden is the text that a Value prints.
const hidden = "[secret]"

// Value is a secret in memory. Formatted or logged it is "[secret]"; marshalled or bound to a query
// it is an error. Reveal is the only way to its bytes.
type Value struct {
	// The bytes are in a function because fmt calls no methods on unexported fields of other
	// packages' structs, and follows pointers: of a function it prints the address.
	plain func() []byte
}

// NewValue returns a value of plain bytes, which it keeps.
func NewValue(plain []byte) Value { return Value{func() []byte { return plain }} }

// Reveal returns the bytes, nil for the zero Value. They may only be used in the request that needs
// them.
func (v Value) Reveal() []byte {
	if v.plain == nil {
		return nil
	}
	return v.plain()
}

// String returns "[secret]".
func (Value) String() string { return hidden }

// GoString returns "[secret]".
func (Value) GoString() string { return hidden }

// Format writes "[secret]", whatever the verb.
func (Value) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// LogValue returns "[secret]".
func (Value) LogValue() slog.Value { return slog.StringValue(hidden) }

var errHidden = errors.New("vault: a secret is neither marshalled nor stored as it is")

// MarshalJSON fails.
func (Value) MarshalJSON() ([]byte, error) { return nil, errHidden }

// MarshalText fails.
func (Value) MarshalText() ([]byte, error) { return nil, errHidden }

// MarshalBinary fails.
func (Value) MarshalBinary() ([]byte, error) { return nil, errHidden }

// Value fails: pgx calls it before it binds a parameter.
func (Value) Value() (driver.Value, error) { return nil, errHidden }

// errNotText describes the accepted input of UnmarshalJSON. Unlike errors of encoding/json, it does
// not quote the actual input.
var errNotText = errors.New("vault: the value of a secret is a JSON string of valid Unicode")

// UnmarshalJSON accepts a string, and null for no value. It rejects text that encoding/json would
// silently change, by replacing invalid Unicode.
func (v *Value) UnmarshalJSON(data []byte) error {
	var text *string
	if !utf8.Valid(data) || json.Unmarshal(data, &text) != nil {
		return errNotText
	}
	if text == nil {
		*v = Value{}
		return nil
	}
	plain := []byte(*text)
	if bytes.ContainsRune(plain, utf8.RuneError) {
		return errNotText
	}
	*v = NewValue(plain)
	return nil
}
