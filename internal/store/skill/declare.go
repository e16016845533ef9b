package skill

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/parley-server/parley/internal/search"
)

// The limits of a contract.
const (
	maxInputs = 100 // properties included
	maxNested = 5   // levels
	maxKey    = 64  // characters of a name
	maxValues = 100 // values of an enum
	maxValue  = 100 // characters of one of them
)

var inputName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// parseContract parses the value of interface.
func (p *parser) parseContract(n *yaml.Node) *Contract {
	c := &Contract{Inputs: []Input{}}
	p.eachMember(n, "interface", func(key string, line int, value *yaml.Node) {
		if key != "inputs" {
			p.rejectUnknown(line, key, []string{"inputs"})
			return
		}
		c.Inputs = p.parseDeclared(value, "inputs", 1)
	})
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		p.addProblem(n.Line, "interface has no inputs; for a skill that takes none write “inputs: {}”.")
	}
	return c
}

// parseDeclared parses the inputs of a skill or the properties of an object.
func (p *parser) parseDeclared(n *yaml.Node, what string, level int) []Input {
	list := []Input{}
	if level > maxNested {
		p.addProblem(n.Line, "Inputs are nested at most %d levels deep.", maxNested)
		return list
	}
	p.eachMember(n, what, func(name string, line int, value *yaml.Node) {
		if p.inputs++; p.inputs == maxInputs+1 {
			p.addProblem(line, "A skill declares at most %d inputs, properties included.", maxInputs)
		}
		if p.inputs > maxInputs {
			return
		}
		if !inputName.MatchString(name) {
			p.addProblem(line, "The name of an input is 1 to %d letters a-z, digits, _ and -, and begins with a letter or _.", maxKey)
		}
		list = append(list, p.parseInput(value, name, level))
	})
	return list
}

// belongs maps a field to the type that it is for.
var belongs = map[string]Type{"format": String, "values": Enum, "items": Array, "properties": Object}

// parseInput parses one declaration; name "" is for the items of an array.
func (p *parser) parseInput(n *yaml.Node, name string, level int) Input {
	in := Input{Name: name}
	before := len(p.problems)
	fields := make(map[string]*yaml.Node)
	allowed := []string{"type", "description", "required", "default", "format", "values", "items", "properties"}
	what := name
	if name == "" {
		allowed = slices.DeleteFunc(allowed, func(f string) bool { return f == "required" || f == "default" })
		what = "items"
	}
	p.eachMember(n, what, func(key string, line int, value *yaml.Node) {
		if !slices.Contains(allowed, key) {
			p.rejectUnknown(line, key, allowed)
			return
		}
		fields[key] = value
	})
	if n.Kind != yaml.MappingNode {
		return in
	}
	var ok bool
	if in.Type, ok = p.parseType(n, fields["type"], what); !ok {
		return in
	}
	if name == "" && in.Type == Array {
		p.addProblem(n.Line, "The items of an array are no arrays; wrap them in an object.")
		return in
	}
	for _, field := range slices.Sorted(maps.Keys(belongs)) {
		if of, value := belongs[field], fields[field]; value != nil && of != in.Type {
			p.addProblem(value.Line, "%s belongs to the type %s, and %s is of type %s.", field, of, what, in.Type)
			delete(fields, field)
		}
	}
	if d := fields["description"]; d != nil {
		in.Description = p.parseDescription(d)
	}
	if r := fields["required"]; r != nil {
		if r.Kind != yaml.ScalarNode || r.ShortTag() != "!!bool" {
			p.addProblem(r.Line, "required is true or false, and stands at each input.")
		}
		in.Required = strings.EqualFold(r.Value, "true")
	}
	p.parseDetail(n, &in, fields, level)
	if d := fields["default"]; d != nil && len(p.problems) == before {
		p.parseDefault(d, &in)
	}
	return in
}

// parseType parses the type in the declaration n.
func (p *parser) parseType(n, field *yaml.Node, what string) (Type, bool) {
	if field == nil {
		p.addProblem(n.Line, "%s has no type; it is one of %s.", what, strings.Join(types, ", "))
		return "", false
	}
	text, ok := p.parseText(field, "type")
	if ok && !slices.Contains(types, text) {
		p.addProblem(field.Line, "Unknown type %q; it is one of %s.", text, strings.Join(types, ", "))
		return "", false
	}
	return Type(text), ok
}

// parseDetail parses the fields that only one type has.
func (p *parser) parseDetail(n *yaml.Node, in *Input, fields map[string]*yaml.Node, level int) {
	if f := fields["format"]; f != nil {
		text, ok := p.parseText(f, "format")
		if in.Format = text; ok && formats[text].layout == "" {
			p.addProblem(f.Line, "Unknown format %q; it is one of %s.", in.Format, strings.Join(slices.Sorted(maps.Keys(formats)), ", "))
		}
	}
	if in.Type == Enum {
		if v := fields["values"]; v == nil {
			p.addProblem(n.Line, "%s is an enum without values.", in.Name)
		} else {
			in.Values = p.parseValues(v)
		}
	}
	if in.Type == Array {
		if i := fields["items"]; i == nil {
			p.addProblem(n.Line, "%s is an array without items: say what each of them is.", in.Name)
		} else {
			item := p.parseInput(i, "", level)
			in.Items = &item
		}
	}
	if props := fields["properties"]; props != nil {
		in.Properties = p.parseDeclared(props, "properties", level+1)
	}
}

// parseValues parses the words of an enum.
func (p *parser) parseValues(n *yaml.Node) []string {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > maxValues {
		p.addProblem(n.Line, "values is a list of 1 to %d words.", maxValues)
		return nil
	}
	var list []string
	for _, v := range n.Content {
		word, ok := p.parseText(v, "A value of an enum")
		switch {
		case !ok:
		case word == "" || utf8.RuneCountInString(word) > maxValue || strings.ContainsFunc(word, unicode.IsControl):
			p.addProblem(v.Line, "A value of an enum is 1 to %d characters on one line.", maxValue)
		case slices.Contains(list, word):
			p.addProblem(v.Line, "The value %q is there twice.", word)
		}
		list = append(list, word)
	}
	return list
}

// parseDefault parses a default, which must be a valid value of the input.
func (p *parser) parseDefault(n *yaml.Node, in *Input) {
	if in.Required {
		p.addProblem(n.Line, "%s is required, so its default is never used.", in.Name)
		return
	}
	before := len(p.problems)
	value := p.parseJSON(n, 0)
	if len(p.problems) > before {
		return
	}
	var c check
	c.checkValue("default", *in, value)
	for _, v := range c.found {
		p.addProblem(n.Line, "%s", v.Message)
	}
	in.Default = value
}

// number matches a JSON number.
var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// maxDeep is the maximum nesting of a default.
const maxDeep = 20

// parseJSON turns a YAML value into JSON. A date is a string.
func (p *parser) parseJSON(n *yaml.Node, deep int) json.RawMessage {
	var value any
	switch tag := n.ShortTag(); {
	case deep > maxDeep:
		p.addProblem(n.Line, "A default is nested at most %d levels deep.", maxDeep)
	case n.Kind == yaml.SequenceNode && tag == "!!seq":
		list := []json.RawMessage{}
		for _, item := range n.Content {
			list = append(list, p.parseJSON(item, deep+1))
		}
		value = list
	case n.Kind == yaml.MappingNode && tag == "!!map":
		members := make(map[string]json.RawMessage)
		p.eachMember(n, "default", func(key string, _ int, value *yaml.Node) { members[key] = p.parseJSON(value, deep+1) })
		value = members
	case n.Kind == yaml.ScalarNode && (tag == "!!str" || tag == "!!timestamp"):
		value = n.Value
	case n.Kind == yaml.ScalarNode && tag == "!!bool":
		value = strings.EqualFold(n.Value, "true")
	case n.Kind == yaml.ScalarNode && (tag == "!!int" || tag == "!!float") && number.MatchString(n.Value):
		return json.RawMessage(n.Value)
	default:
		p.addProblem(n.Line, "This default has no counterpart in JSON.")
	}
	raw, _ := json.Marshal(value) // text, truth values and JSON always marshal
	return raw
}

// rejectUnknown rejects an unknown name.
func (p *parser) rejectUnknown(line int, name string, known []string) {
	message := fmt.Sprintf("%q is not understood; there is %s.", name, strings.Join(known, ", "))
	if near := search.Nearest(name, known, 1); len(near) > 0 {
		message = fmt.Sprintf("%q is not understood. Did you mean %s?", name, near[0])
	}
	p.addProblem(line, "%s", message)
}
