package docsite

import (
	"fmt"
	"slices"
	"strings"
)

// maxDepth is how deep the fields of a schema are listed.
const maxDepth = 6

// Schema describes a value for a reader.
type Schema struct {
	Type        string // such as string, array of objects, string or null
	Description string
	Rules       []string // bounds and patterns in words
	Values      []string // the allowed values
	Example     string
	Fields      []Field  // of an object, or of the objects in an array
	Variants    []Schema // one of these
	Name        string   // of a shared schema
}

// Field is a member of an object.
type Field struct {
	Schema
	Name     string
	Required bool
}

// Title returns a heading for a variant.
func (s Schema) Title() string {
	for _, f := range s.Fields { // what tells the variants apart
		if len(f.Values) == 1 && f.Required {
			return f.Name + ": " + f.Values[0]
		}
	}
	if s.Name != "" {
		return s.Name
	}
	var required []string
	for _, f := range s.Fields {
		if f.Required {
			required = append(required, f.Name)
		}
	}
	if len(required) > 0 {
		return "with " + strings.Join(required, ", ")
	}
	return s.Type
}

// describe converts a JSON Schema. within are the shared schemas around it.
func describe(n *node, within ...string) Schema {
	name := n.refName()
	if name != "" {
		if slices.Contains(within, name) || len(within) > maxDepth {
			return Schema{Type: name, Name: name}
		}
		within = append(slices.Clone(within), name)
	}
	n = n.get()
	if n == nil {
		return Schema{Type: "any"}
	}
	if all := n.get("allOf"); all != nil {
		n = merged(n)
	}
	s := Schema{Name: name, Description: n.str("description"), Values: values(n), Rules: rules(n), Example: n.str("example")}
	types := n.get("type").list()
	for _, keyword := range []string{"oneOf", "anyOf"} {
		variants := n.get(keyword)
		if variants == nil || slices.ContainsFunc(variants.items, func(v *node) bool { return !isSchemaOfValue(v) }) {
			continue
		}
		for _, v := range variants.items {
			if v.str("type") == "null" {
				types = append(types, "null")
				continue
			}
			s.Variants = append(s.Variants, describe(v, within...))
		}
	}
	if len(s.Variants) == 1 { // a value or null
		only := s.Variants[0]
		only.Description = strings.TrimSpace(s.Description + " " + only.Description)
		only.Type = joinTypes(append([]string{only.Type}, types...))
		return only
	}
	s.Fields = fields(n, within)
	if items := n.get("items"); items != nil {
		item := describe(n.members["items"], within...)
		s.Type = joinTypes(append([]string{"array of " + plural(item.Type)}, slices.DeleteFunc(types, func(t string) bool {
			return t == "array"
		})...))
		s.Fields, s.Variants = item.Fields, item.Variants
		if s.Description == "" {
			s.Description = item.Description
		}
		if s.Values == nil {
			s.Values = item.Values
		}
		s.Rules = append(s.Rules, item.Rules...)
		return s
	}
	if format := n.str("format"); format != "" {
		types[0] = strings.TrimSpace(map[string]string{"uuid": "UUID", "date-time": "time", "uri": "URL", "binary": "bytes"}[format])
		if types[0] == "" {
			types[0] = format
		}
	}
	s.Type = typeOf(s, types)
	return s
}

// isSchemaOfValue reports whether a part of oneOf or anyOf describes a value, and not only which
// members are required.
func isSchemaOfValue(v *node) bool {
	v = v.get()
	return v != nil && !(len(v.names) == 1 && v.names[0] == "required")
}

func typeOf(s Schema, types []string) string {
	if len(s.Variants) > 0 {
		var names []string
		for _, v := range s.Variants {
			if !slices.Contains(names, v.Type) {
				names = append(names, v.Type)
			}
		}
		return joinTypes(append(names, slices.DeleteFunc(types, func(t string) bool { return t != "null" })...))
	}
	if len(types) == 0 {
		switch {
		case len(s.Fields) > 0:
			return "object"
		case len(s.Values) > 0:
			return "string"
		}
		return "any"
	}
	return joinTypes(types)
}

func joinTypes(types []string) string {
	var unique []string
	for _, t := range types {
		if !slices.Contains(unique, t) {
			unique = append(unique, t)
		}
	}
	return strings.Join(unique, " or ")
}

func plural(name string) string {
	if strings.HasSuffix(name, "s") || strings.Contains(name, " ") || name == "any" {
		return map[bool]string{true: "values", false: name}[name == "any"]
	}
	return name + "s"
}

func fields(n *node, within []string) (list []Field) {
	properties := n.get("properties")
	if properties == nil {
		return nil
	}
	required := n.get("required").list()
	for _, name := range properties.names {
		list = append(list, Field{Name: name, Required: slices.Contains(required, name), Schema: describe(properties.members[name], within...)})
	}
	return list
}

// values returns the constants of a schema.
func values(n *node) []string {
	if c := n.get("const"); c != nil {
		return []string{c.text()}
	}
	if enum := n.get("enum"); enum != nil {
		return enum.list()
	}
	return nil
}

// rules returns the bounds of a schema in words.
func rules(n *node) (list []string) {
	add := func(format, keyword string) {
		if v := n.str(keyword); v != "" {
			list = append(list, fmt.Sprintf(format, v))
		}
	}
	add("default %s", "default")
	between := func(low, high, unit string) {
		from, to := n.str(low), n.str(high)
		switch {
		case from != "" && to != "" && from != "0":
			list = append(list, fmt.Sprintf("%s to %s%s", from, to, unit))
		case to != "":
			list = append(list, fmt.Sprintf("at most %s%s", to, unit))
		case from != "" && from != "0":
			list = append(list, fmt.Sprintf("at least %s%s", from, unit))
		}
	}
	between("minimum", "maximum", "")
	between("minLength", "maxLength", " characters")
	between("minItems", "maxItems", " items")
	between("minProperties", "maxProperties", " members")
	add("matches %s", "pattern")
	return list
}

// merged returns the schema that fulfils a schema and all parts of its allOf.
func merged(n *node) *node {
	out := &node{root: n.root, members: make(map[string]*node)}
	set := func(name string, value *node) {
		if out.members[name] == nil {
			out.names = append(out.names, name)
		}
		out.members[name] = value
	}
	for _, part := range append([]*node{n}, n.get("allOf").items...) {
		if part = part.get(); part == nil {
			continue
		}
		if part != n && part.get("allOf") != nil {
			part = merged(part)
		}
		for _, name := range part.names {
			value, old := part.members[name], out.members[name]
			switch {
			case name == "allOf":
			case name == "properties" && old != nil:
				set(name, mergedProperties(old.get(), value.get()))
			case name == "required" && old != nil:
				set(name, &node{root: n.root, items: append(slices.Clone(old.items), value.items...)})
			case name == "description" && old != nil:
			default:
				set(name, value)
			}
		}
	}
	return out
}

// mergedProperties returns the properties of both; those in both must fulfil both.
func mergedProperties(a, b *node) *node {
	out := &node{root: a.root, names: slices.Clone(a.names), members: make(map[string]*node)}
	for name, value := range a.members {
		out.members[name] = value
	}
	for _, name := range b.names {
		if out.members[name] == nil {
			out.names = append(out.names, name)
			out.members[name] = b.members[name]
			continue
		}
		both := &node{root: a.root, items: []*node{out.members[name], b.members[name]}}
		out.members[name] = &node{root: a.root, names: []string{"allOf"}, members: map[string]*node{"allOf": both}}
	}
	return out
}
