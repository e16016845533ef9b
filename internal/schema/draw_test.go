package schema_test

import (
	"pgregory.net/rapid"
)

// artist draws schemas of one draft.
type artist struct {
	*rapid.T
	old  bool // 2019-09: items can be an array
	defs []string
}

// drawSchema draws a whole document.
func drawSchema(t *rapid.T) object {
	a := artist{T: t, old: rapid.Bool().Draw(t, "2019-09"), defs: []string{"N", "O", "p q"}}
	doc := a.subschema(3)
	defs := object{}
	for _, name := range a.defs {
		defs[name] = a.either(a.subschema(2))
	}
	doc["$defs"] = defs
	doc["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	if a.old {
		doc["$schema"] = "https://json-schema.org/draft/2019-09/schema#"
	}
	return doc
}

// either returns a schema, or sometimes one of the two boolean schemas.
func (a artist) either(s object) any {
	switch rapid.IntRange(0, 15).Draw(a.T, "true or false") {
	case 0:
		return true
	case 1:
		return false
	default:
		return s
	}
}

func (a artist) child(depth int) any { return a.either(a.subschema(depth - 1)) }

func (a artist) children(depth int) []any {
	var all []any
	for range rapid.IntRange(1, 3).Draw(a.T, "how many") {
		all = append(all, a.child(depth))
	}
	return all
}

func (a artist) named(depth int, names []string) object {
	all := object{}
	for range rapid.IntRange(0, 3).Draw(a.T, "how many") {
		all[rapid.SampledFrom(names).Draw(a.T, "name")] = a.child(depth)
	}
	return all
}

func (a artist) names() []any {
	all := []any{}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(members), 0, 2, rapid.ID[string]).Draw(a.T, "names") {
		all = append(all, name)
	}
	return all
}

func (a artist) small() int { return rapid.IntRange(0, 3).Draw(a.T, "count") }

func (a artist) values() []any {
	var all []any
	for range rapid.IntRange(1, 3).Draw(a.T, "values") {
		all = append(all, drawValue(a.T, 1))
	}
	return all
}

// words are the keywords that can be drawn, with their generators.
var words []word

type word struct {
	name string
	deep bool // contains schemas
	draw func(a artist, depth int) any
}

func init() { // keywords draw schemas, which draw keywords
	words = []word{
		{"type", false, func(a artist, _ int) any { return rapid.SampledFrom(kinds).Draw(a.T, "type") }},
		{"type", false, func(a artist, _ int) any {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(kinds), 1, 3, rapid.ID[string]).Draw(a.T, "types")
		}},
		{"enum", false, func(a artist, _ int) any { return a.values() }},
		{"const", false, func(a artist, _ int) any { return drawValue(a.T, 1) }},
		{"title", false, func(artist, int) any { return "T" }},
		{"default", false, func(artist, int) any { return nil }},
		{"format", false, func(a artist, _ int) any { return rapid.SampledFrom(formats).Draw(a.T, "format") }},
		{"minLength", false, func(a artist, _ int) any { return a.small() }},
		{"maxLength", false, func(a artist, _ int) any { return a.small() }},
		{"pattern", false, func(a artist, _ int) any { return rapid.SampledFrom(shapes).Draw(a.T, "pattern") }},
		{"minimum", false, func(a artist, _ int) any { return rapid.SampledFrom(numbers).Draw(a.T, "bound") }},
		{"maximum", false, func(a artist, _ int) any { return rapid.SampledFrom(numbers).Draw(a.T, "bound") }},
		{"exclusiveMinimum", false, func(a artist, _ int) any { return rapid.SampledFrom(numbers).Draw(a.T, "bound") }},
		{"exclusiveMaximum", false, func(a artist, _ int) any { return rapid.SampledFrom(numbers).Draw(a.T, "bound") }},
		{"multipleOf", false, func(a artist, _ int) any { return rapid.SampledFrom([]int{1, 2, 3, 5}).Draw(a.T, "multiple") }},
		{"minItems", false, func(a artist, _ int) any { return a.small() }},
		{"maxItems", false, func(a artist, _ int) any { return a.small() }},
		{"uniqueItems", false, func(a artist, _ int) any { return rapid.Bool().Draw(a.T, "unique") }},
		{"minProperties", false, func(a artist, _ int) any { return a.small() }},
		{"maxProperties", false, func(a artist, _ int) any { return a.small() }},
		{"required", false, func(a artist, _ int) any { return a.names() }},
		{"dependentRequired", false, func(a artist, _ int) any { return object{rapid.SampledFrom(members).Draw(a.T, "if"): a.names()} }},
		{"allOf", true, func(a artist, d int) any { return a.children(d) }},
		{"anyOf", true, func(a artist, d int) any { return a.children(d) }},
		{"oneOf", true, func(a artist, d int) any { return a.children(d) }},
		{"not", true, func(a artist, d int) any { return a.child(d) }},
		{"if", true, func(a artist, d int) any { return a.child(d) }},
		{"properties", true, func(a artist, d int) any { return a.named(d, members) }},
		{"properties", true, func(a artist, d int) any { return a.named(d, members) }},
		{"patternProperties", true, func(a artist, d int) any { return a.named(d, shapes) }},
		{"additionalProperties", true, func(a artist, d int) any { return a.child(d) }},
		{"unevaluatedProperties", true, func(a artist, d int) any { return a.child(d) }},
		{"propertyNames", true, func(a artist, d int) any { return a.child(d) }},
		{"dependentSchemas", true, func(a artist, d int) any { return a.named(d, members) }},
		{"items", true, func(a artist, d int) any { return a.child(d) }},
		{"contains", true, func(a artist, d int) any { return a.child(d) }},
	}
}

// subschema draws a schema with at most depth levels.
func (a artist) subschema(depth int) object {
	s := object{}
	for range rapid.IntRange(0, 4).Draw(a.T, "keywords") {
		w := rapid.SampledFrom(words).Draw(a.T, "keyword")
		if w.deep && depth == 0 {
			continue
		}
		s[w.name] = w.draw(a, depth)
	}
	if depth > 0 {
		a.companions(s, depth)
	}
	if rapid.IntRange(0, 5).Draw(a.T, "refer") == 0 {
		s["$ref"] = rapid.SampledFrom([]string{"#", "#/$defs/N", "#/$defs/O", "#/$defs/p%20q", "#/properties/a"}).Draw(a.T, "ref")
	}
	return s
}

// companions draws the keywords that depend on others.
func (a artist) companions(s object, depth int) {
	if s["if"] != nil {
		s["then"] = a.child(depth)
		if rapid.Bool().Draw(a.T, "else") {
			s["else"] = a.child(depth)
		}
	}
	if s["contains"] != nil {
		if rapid.Bool().Draw(a.T, "minContains") {
			s["minContains"] = a.small()
		}
		if rapid.Bool().Draw(a.T, "maxContains") {
			s["maxContains"] = a.small()
		}
	}
	switch {
	case s["items"] == nil || !rapid.Bool().Draw(a.T, "tuple"):
	case a.old:
		s["additionalItems"] = s["items"]
		s["items"] = a.children(depth)
	default:
		s["prefixItems"] = a.children(depth)
	}
}
