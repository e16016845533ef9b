package request

import (
	"encoding/json"
	"slices"

	"github.com/parley-server/parley/internal/fault"
)

// Field describes one member of an object that is parsed into a T. Parse gets its JSON Pointer and
// its value.
type Field[T any] struct {
	Name  string
	Parse func(c *Checks, at string, raw json.RawMessage, to *T)
}

// FieldNames returns the names of fields.
func FieldNames[T any](fields []Field[T]) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return names
}

// ParseMembers parses the members of an object at a JSON Pointer, in their order, and returns the
// names that are present. It reports members besides names; nil: those of the fields.
func ParseMembers[T any](c *Checks, at string, object []Member, to *T, fields []Field[T], names []string) (given map[string]bool) {
	if names == nil {
		names = FieldNames(fields)
	}
	given = make(map[string]bool, len(object))
	for _, m := range object {
		if !slices.Contains(names, m.Name) {
			c.Unknown("field", at+Pointer(m.Name), m.Name, names)
			continue
		}
		given[m.Name] = true
		for _, f := range fields {
			if f.Name == m.Name {
				f.Parse(c, at+Pointer(m.Name), m.Value, to)
			}
		}
	}
	return given
}

// ParseObject is ParseMembers for a value, which must be an object.
func ParseObject[T any](c *Checks, at string, raw json.RawMessage, to *T, fields []Field[T]) (given map[string]bool) {
	if !c.Object(at, raw) {
		return nil
	}
	return ParseMembers(c, at, Given(Members(raw)), to, fields, nil)
}

// addViolation records a violation.
func (c *Checks) addViolation(param, rule, message string, expected any) {
	c.Add(fault.Violation{Param: param, Rule: rule, Message: message, Expected: expected})
}
