package schema

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
)

// node is one subschema.
type node struct {
	at       string  // JSON pointer to it
	never    bool    // the schema false
	types    kinds   // 0 is any
	oneOfs   [][]any // the value equals one of each: enum, and const as an enum of one
	size     int     // number of values in oneOfs
	format   string
	match    *pattern
	multiple float64        // divisor of a number, or 0
	limits   map[string]any // limits that the engine checks
	engine   *engine        // nil without limits
	unique   bool

	ref                   *node
	target                string // the pointer in $ref, until ref is found
	allOf, anyOf, oneOf   []*node
	not                   *node
	cond, then, otherwise *node

	properties   map[string]*node
	names        []string // names of properties, sorted
	required     []string
	patterns     []patternMember
	additional   *node
	unevaluated  *node
	propertyName *node
	follow       map[string][]string // names required beside a name
	dependent    map[string]*node

	prefix      []*node
	items       *node // schema of the items after prefix
	contains    *node
	minContains int
	maxContains int

	weight int // number of subschemas that apply where this one does, including itself
}

type patternMember struct {
	match *pattern
	node  *node
}

// localNodes returns the subschemas that apply to the same value.
func (n *node) localNodes() []*node {
	all := slices.Concat(n.allOf, n.anyOf, n.oneOf)
	for _, other := range []*node{n.ref, n.not, n.cond, n.then, n.otherwise} {
		if other != nil {
			all = append(all, other)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.dependent)) {
		all = append(all, n.dependent[name])
	}
	return all
}

// kinds is a set of types.
type kinds uint8

const (
	null kinds = 1 << iota
	boolean
	object
	array
	number
	str
	integer
)

var kindNames = map[string]kinds{
	"null": null, "boolean": boolean, "object": object, "array": array, "number": number, "string": str, "integer": integer,
}

// kindOf returns the type of a value; a whole number is both number and integer.
func kindOf(v any) kinds {
	switch v := v.(type) {
	case bool:
		return boolean
	case map[string]any:
		return object
	case []any:
		return array
	case float64:
		if v == math.Trunc(v) {
			return number | integer
		}
		return number
	case string:
		return str
	default:
		return null
	}
}

// String names the types: "integer or null". Number and integer together are integer.
func (k kinds) String() string {
	var names []string
	for _, name := range slices.SortedFunc(maps.Keys(kindNames), func(a, b string) int { return cmp.Compare(kindNames[a], kindNames[b]) }) {
		if k&kindNames[name] != 0 && (name != "number" || k&integer == 0) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}
