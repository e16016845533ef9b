package admin

import "github.com/parley-server/parley/internal/fault"

// The methods below return nil for a member that is absent: it stays unchanged.

// optionalText parses a text that may be empty. A store checks its length.
func (c *call) optionalText(name string) *string {
	if !c.body.Has(name) {
		return nil
	}
	return new(c.body.RequiredText(name))
}

// optionalInt parses a whole number.
func (c *call) optionalInt(name string, low, high int) *int {
	if !c.body.Has(name) {
		return nil
	}
	return new(c.body.Int(name, 0, low, high))
}

// optionalBool parses true or false.
func (c *call) optionalBool(name string) *bool {
	if !c.body.Has(name) {
		return nil
	}
	return new(c.body.Bool(name))
}

// notNull reports members that cannot be null.
func (c *call) notNull(names ...string) {
	for _, name := range names {
		if c.nulls[name] {
			c.Add(fault.Violation{Param: "/" + name, Rule: "type", Message: name + " cannot be null. Leave it out to keep it."})
		}
	}
}
