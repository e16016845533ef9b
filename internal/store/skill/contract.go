package skill

import "encoding/json"

// Contract says which inputs a skill takes.
type Contract struct {
	Inputs []Input `json:"inputs"` // in the order of their declaration
}

// Input is one declared input, or a property of an object, or what the items of an
// array are.
type Input struct {
	Name        string          `json:"name,omitempty"` // "" for items
	Type        Type            `json:"type"`
	Description string          `json:"description,omitempty"`
	Required    bool            `json:"required,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`    // what stands for a value that is not given
	Format      string          `json:"format,omitempty"`     // of a string: a key of formats
	Values      []string        `json:"values,omitempty"`     // of an enum
	Items       *Input          `json:"items,omitempty"`      // of an array
	Properties  []Input         `json:"properties,omitempty"` // of an object; none takes any object
}

// Type is what values an input takes.
type Type string

const (
	String  Type = "string"
	Integer Type = "integer" // a whole number, however it is written: 3, 3.0, 3e2
	Number  Type = "number"
	Boolean Type = "boolean"
	Enum    Type = "enum" // one of several strings
	Array   Type = "array"
	Object  Type = "object"
)

var types = []string{string(String), string(Integer), string(Number), string(Boolean), string(Enum), string(Array), string(Object)}

// format is how a string is written.
type format struct{ layout, example string }

var formats = map[string]format{
	"date":  {"2006-01-02", "2026-10-31"},
	"month": {"2006-01", "2026-10"},
}
