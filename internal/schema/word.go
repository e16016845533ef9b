package schema

import (
	"math"
	"slices"
	"strings"
)

// word is a keyword of a subschema, with its value and place.
type word struct {
	*compiler
	node   *node
	beside map[string]any // all keywords of the subschema
	name   string
	value  any
	at     string
}

// maxCount is the limit of lengths and counts.
const maxCount = math.MaxInt32

// readKeyword compiles a keyword, or rejects it. An unknown keyword is not ignored: its author
// would believe that it is checked.
func (w word) readKeyword() error {
	n := w.node
	switch w.name {
	case "title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment",
		"contentEncoding", "contentMediaType", "contentSchema", "discriminator", "externalDocs", "xml":
		return nil // annotations assert nothing
	case "$schema":
		return w.checkDialect()
	case "$ref":
		return w.readReference()
	case "$defs", "definitions":
		return w.compileNamed(new(map[string]*node))
	case "type":
		return w.readTypes()
	case "enum":
		return w.readEnum()
	case "const":
		n.requireEqual([]any{w.value})
		return nil
	case "format":
		return w.readString(&n.format)
	case "pattern":
		return w.compilePattern(w.value, &n.match)
	case "minimum", "maximum":
		return w.readNumber()
	case "multipleOf":
		return w.readMultiple()
	case "exclusiveMinimum":
		return w.readExclusive(w.beside["minimum"])
	case "exclusiveMaximum":
		return w.readExclusive(w.beside["maximum"])
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		var count int
		err := w.readCount(&count)
		w.addLimit(count)
		return err
	case "minContains":
		return w.readCount(&n.minContains)
	case "maxContains":
		return w.readCount(&n.maxContains)
	case "required":
		return w.readRequired()
	case "dependentRequired":
		return w.dependentRequired()
	case "uniqueItems":
		unique, ok := w.value.(bool)
		if n.unique = unique; !ok {
			return newError(w.at, "uniqueItems is true or false.")
		}
		return nil
	case "allOf":
		return w.compileList(&n.allOf)
	case "anyOf":
		return w.compileList(&n.anyOf)
	case "oneOf":
		return w.compileList(&n.oneOf)
	case "not":
		return w.compileOne(&n.not)
	case "if":
		return w.compileOne(&n.cond)
	case "then":
		return w.compileOne(&n.then)
	case "else":
		return w.compileOne(&n.otherwise)
	case "dependentSchemas":
		return w.compileNamed(&n.dependent)
	case "properties":
		return w.readProperties()
	case "patternProperties":
		return w.patternProperties()
	case "additionalProperties":
		return w.compileOne(&n.additional)
	case "unevaluatedProperties":
		return w.compileOne(&n.unevaluated)
	case "propertyNames":
		return w.compileOne(&n.propertyName)
	case "prefixItems":
		return w.compileList(&n.prefix)
	case "items":
		if _, list := w.value.([]any); list { // the form before 2020-12
			return w.compileList(&n.prefix)
		}
		return w.compileOne(&n.items)
	case "additionalItems":
		return w.compileOne(&n.items)
	case "contains":
		return w.compileOne(&n.contains)
	}
	if strings.HasPrefix(w.name, "x-") {
		return nil
	}
	if reason, known := refused[w.name]; known {
		return newError(w.at, "%s is not accepted: %s", w.name, reason)
	}
	return newError(w.at,
		"Unknown keyword %.60q, so it would not be checked. Leave it out, or let its name begin with x- if it is only a remark.", w.name)
}

// refused maps known keywords that are not accepted to the reasons.
var refused = map[string]string{
	"$id":              "schemas have no addresses here. Refer to #/$defs/Name.",
	"id":               "schemas have no addresses here. Refer to #/$defs/Name.",
	"$anchor":          "refer to #/$defs/Name.",
	"$dynamicRef":      "refer to #/$defs/Name with $ref.",
	"$dynamicAnchor":   "refer to #/$defs/Name with $ref.",
	"$recursiveRef":    "refer to # or #/$defs/Name with $ref.",
	"$recursiveAnchor": "refer to # or #/$defs/Name with $ref.",
	"$vocabulary":      "it belongs into meta-schemas.",
	"dependencies":     "write dependentRequired or dependentSchemas.",
	"unevaluatedItems": "write items or additionalItems.",
	"nullable":         `write "type": ["string", "null"], or anyOf with {"type": "null"}.`,
}

// dialects are the values of $schema with supported keywords.
var dialects = []string{
	"json-schema.org/draft-07/schema", "json-schema.org/draft/2019-09/schema", "json-schema.org/draft/2020-12/schema",
}

func (w word) checkDialect() error {
	uri, _ := w.value.(string)
	_, name, _ := strings.Cut(strings.TrimSuffix(uri, "#"), "://")
	if w.node.at != "" || !slices.Contains(dialects, name) {
		return newError(w.at, "$schema stands at the top and names draft-07, 2019-09 or 2020-12.")
	}
	return nil
}
