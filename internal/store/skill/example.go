package skill

import "encoding/json"

// Example returns an input that the contract accepts: one value for every required input.
func (c *Contract) Example() map[string]any {
	if c == nil {
		return map[string]any{}
	}
	return exampleValue(c.Inputs)
}

func exampleValue(inputs []Input) map[string]any {
	object := make(map[string]any)
	for _, in := range inputs {
		if in.Required {
			object[in.Name] = in.exampleValue()
		}
	}
	return object
}

func (in Input) exampleValue() any {
	switch {
	case in.Default != nil:
		return json.RawMessage(in.Default)
	case in.Format != "":
		return formats[in.Format].example
	}
	switch in.Type {
	case Enum:
		return in.Values[0]
	case Integer, Number:
		return 1
	case Boolean:
		return true
	case Array:
		return []any{in.Items.exampleValue()}
	case Object:
		return exampleValue(in.Properties)
	}
	return "text"
}
