package skill

import "encoding/json"

// Contract declares the inputs of a skill.
type Contract struct {
	Inputs []Input `json:"inputs"` // in the order of their declaration
}

// Input is one declared input, a property of an object, or the declaration of an array's items.
type Input struct {
	Name        string          `json:"name,omitempty"` // "" for items
	Type        Type            `json:"type"`
	Description string          `json:"description,omitempty"`
	Required    bool            `json:"required,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`    // value used if none is given
	Format      string          `json:"format,omitempty"`     // format of a string: a key of formats
	Values      []string        `json:"values,omitempty"`     // values of an enum
	Items       *Input          `json:"items,omitempty"`      // items of an array
	Properties  []Input         `json:"properties,omitempty"` // properties of an object; none: any object
}

// Type is the type of an input's values.
type Type string

const (
	String  Type = "string"
	Integer Type = "integer" // a whole number, in any notation: 3, 3.0, 3e2
	Number  Type = "number"
	Boolean Type = "boolean"
	Enum    Type = "enum" // one of several strings
	Array   Type = "array"
	Object  Type = "object"
)

var types = []string{string(String), string(Integer), string(Number), string(Boolean), string(Enum), string(Array), string(Object)}

// format is the notation of a string.
type format struct{ layout, example string }

var formats = map[string]format{
	"date":  {"2006-01-02", "2026-10-31"},
	"month": {"2006-01", "2026-10"},
}
