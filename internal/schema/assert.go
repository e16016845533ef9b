package schema

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// addLimit stores a keyword for the engine.
func (w word) addLimit(value any) {
	if w.node.limits == nil {
		w.node.limits = map[string]any{}
	}
	w.node.limits[w.name] = value
}

func (w word) readString(to *string) error {
	s, ok := w.value.(string)
	if *to = s; !ok {
		return newError(w.at, "%s is a string.", w.name)
	}
	return nil
}

func (w word) readCount(to *int) error {
	f, ok := w.value.(float64)
	if !ok || f != math.Trunc(f) || f < 0 || f > maxCount {
		return newError(w.at, "%s is a whole number from 0 to %d.", w.name, maxCount)
	}
	*to = int(f)
	return nil
}

// readExclusive reads an exclusive limit. Draft 04 wrote it as a boolean beside minimum or maximum,
// and zod-to-json-schema still does for some targets.
func (w word) readExclusive(bound any) error {
	marked, ok := w.value.(bool)
	if !ok {
		return w.readNumber()
	}
	f, ok := bound.(float64)
	if !ok {
		return newError(w.at, "%s is a number.", w.name)
	}
	if marked {
		w.addLimit(f)
	}
	return nil
}

func (w word) readNumber() error {
	f, ok := w.value.(float64)
	if !ok {
		return newError(w.at, "%s is a number.", w.name)
	}
	w.addLimit(f)
	return nil
}

func (w word) readMultiple() error {
	f, ok := w.value.(float64)
	if !ok || f < 1 || f != math.Trunc(f) || f > maxCount {
		return newError(w.at,
			"multipleOf is a whole number from 1 to %d: of a fraction, like 0.1, no number in double precision is an exact multiple.", maxCount)
	}
	w.node.multiple = f
	return nil
}

func (w word) readTypes() error {
	list, ok := w.value.([]any)
	if !ok {
		list = []any{w.value}
	}
	for _, item := range list {
		name, _ := item.(string)
		kind := kindNames[name]
		if kind == 0 || w.node.types&kind != 0 {
			return newError(w.at, "type is one of %s, or an array of different ones.", strings.Join(slices.Sorted(maps.Keys(kindNames)), ", "))
		}
		w.node.types |= kind
	}
	if len(list) == 0 {
		return newError(w.at, "No value fits an empty list of types.")
	}
	return nil
}

func (w word) readEnum() error {
	values, ok := w.value.([]any)
	if !ok || len(values) == 0 {
		return newError(w.at, "enum is an array of at least one value.")
	}
	w.node.requireEqual(values)
	return nil
}

// requireEqual requires the value to be one of these.
func (n *node) requireEqual(values []any) {
	n.oneOfs = append(n.oneOfs, values)
	for _, v := range values {
		n.size += countValues(v)
	}
}

// countValues counts the values inside a value.
func countValues(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			n += countValues(item)
		}
	case map[string]any:
		for _, member := range v {
			n += countValues(member)
		}
	}
	return n
}

// readNames reads a list of distinct names.
func (w word) readNames(value any, at string) ([]string, error) {
	list, ok := value.([]any)
	names := make([]string, 0, len(list))
	seen := make(map[string]bool, len(list))
	for _, item := range list {
		name, isName := item.(string)
		ok = ok && isName && !seen[name]
		names, seen[name] = append(names, name), true
	}
	if !ok {
		return nil, newError(at, "%s is an array of different names.", w.name)
	}
	return names, nil
}

func (w word) readRequired() (err error) {
	w.node.required, err = w.readNames(w.value, w.at)
	return err
}

func (w word) dependentRequired() error {
	members, ok := w.value.(map[string]any)
	if !ok {
		return newError(w.at, "dependentRequired is an object of arrays of names.")
	}
	all := make(map[string][]string, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		names, err := w.readNames(members[name], w.at+pointerStep(name))
		if err != nil {
			return err
		}
		all[name] = names
	}
	w.node.follow = all
	return nil
}

func (w word) readProperties() error {
	err := w.compileNamed(&w.node.properties)
	w.node.names = slices.Sorted(maps.Keys(w.node.properties))
	return err
}

func (w word) patternProperties() error {
	var members map[string]*node
	if err := w.compileNamed(&members); err != nil {
		return err
	}
	for _, source := range slices.Sorted(maps.Keys(members)) {
		member := patternMember{node: members[source]}
		if err := w.compilePattern(source, &member.match); err != nil {
			return err
		}
		w.node.patterns = append(w.node.patterns, member)
	}
	return nil
}
