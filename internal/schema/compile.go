package schema

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
)

// compiler compiles a document to nodes.
type compiler struct {
	nodes map[string]*node // by their place
	order []*node
}

// compileNode compiles a subschema and everything in it.
func (c *compiler) compileNode(document any, at string) (*node, error) {
	n := &node{at: at, maxContains: math.MaxInt, minContains: 1}
	c.nodes[at] = n
	c.order = append(c.order, n)
	members, ok := document.(map[string]any)
	if !ok {
		allowed, ok := document.(bool)
		if !ok {
			return nil, newError(at, "A schema is a JSON object, true or false.")
		}
		n.never = !allowed
		return n, nil
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		w := word{compiler: c, node: n, beside: members, name: name, value: members[name], at: at + pointerStep(name)}
		if err := w.readKeyword(); err != nil {
			return nil, err
		}
	}
	if err := n.checkConsistent(members); err != nil {
		return nil, err
	}
	var err error
	n.engine, err = newEngine(n)
	return n, err
}

// checkConsistent rejects keywords that have no meaning without another one, and the one
// combination that is almost always a mistake.
func (n *node) checkConsistent(members map[string]any) error {
	for _, pair := range [][2]string{
		{"then", "if"}, {"else", "if"}, {"minContains", "contains"}, {"maxContains", "contains"}, {"additionalItems", "items"},
	} {
		if _, there := members[pair[0]]; there && members[pair[1]] == nil {
			return newError(n.at+pointerStep(pair[0]), "%s means nothing without %s.", pair[0], pair[1])
		}
	}
	if _, list := members["items"].([]any); members["items"] != nil {
		if _, there := members["additionalItems"]; there && !list {
			return newError(n.at+"/additionalItems", "additionalItems means nothing unless items is an array.")
		}
		if _, there := members["prefixItems"]; there && list {
			return newError(n.at+"/items", "items is a schema where prefixItems is used.")
		}
	}
	if n.additional != nil && !n.additional.allowsEverything(members["additionalProperties"]) && (len(n.localNodes()) > 0 || n.target != "") {
		return newError(n.at+"/additionalProperties",
			"additionalProperties does not see the properties that $ref, allOf, anyOf, oneOf, not, if or dependentSchemas name beside "+
				"it. Use unevaluatedProperties, or move it.")
	}
	return nil
}

// allowsEverything reports whether a schema allows everything.
func (n *node) allowsEverything(document any) bool {
	members, isObject := document.(map[string]any)
	return isObject && len(members) == 0 || !isObject && !n.never
}

// compileList compiles the subschemas of a keyword that contains several.
func (w word) compileList(to *[]*node) error {
	items, ok := w.value.([]any)
	if !ok || len(items) == 0 {
		return newError(w.at, "%s is an array of at least one schema.", w.name)
	}
	for i, item := range items {
		n, err := w.compileNode(item, fmt.Sprintf("%s/%d", w.at, i))
		if err != nil {
			return err
		}
		*to = append(*to, n)
	}
	return nil
}

// compileNamed compiles the subschemas of a keyword that names them.
func (w word) compileNamed(to *map[string]*node) error {
	members, ok := w.value.(map[string]any)
	if !ok {
		return newError(w.at, "%s is an object of schemas.", w.name)
	}
	*to = make(map[string]*node, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		n, err := w.compileNode(members[name], w.at+pointerStep(name))
		if err != nil {
			return err
		}
		(*to)[name] = n
	}
	return nil
}

// compileOne compiles the subschema of a keyword that contains one.
func (w word) compileOne(to **node) (err error) {
	*to, err = w.compileNode(w.value, w.at)
	return err
}

// readReference reads a $ref. It accepts only references within the same document.
func (w word) readReference() error {
	ref, ok := w.value.(string)
	if !ok {
		return newError(w.at, "$ref is a string.")
	}
	fragment, local := strings.CutPrefix(ref, "#")
	if !local {
		return newError(w.at, "Nothing is fetched: a $ref begins with # and names a place in this schema, like #/$defs/Name.")
	}
	target, err := url.PathUnescape(fragment)
	if err != nil || target != "" && target[0] != '/' {
		return newError(w.at, "A $ref names a place in this schema by a JSON pointer, like #/$defs/Name.")
	}
	w.node.target = "#" + target
	return nil
}
