package openapi

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxWalk limits how deep a document is searched for references.
const maxWalk = 200

// brokenRef names the first reference of a document that leads nowhere, with its place; "": there is
// none. It explains why a document could not be loaded.
func brokenRef(raw []byte) string {
	var root any
	if yaml.Unmarshal(raw, &root) != nil {
		return ""
	}
	return findBroken(root, root, "", 0)
}

func findBroken(root, at any, place string, depth int) string {
	if depth > maxWalk {
		return ""
	}
	switch at := at.(type) {
	case map[string]any:
		if ref, ok := at["$ref"].(string); ok {
			return checkRef(root, ref, place)
		}
		for _, name := range slices.Sorted(maps.Keys(at)) {
			step := strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
			if wrong := findBroken(root, at[name], place+"/"+step, depth+1); wrong != "" {
				return wrong
			}
		}
	case []any:
		for i, v := range at {
			if wrong := findBroken(root, v, place+"/"+strconv.Itoa(i), depth+1); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// checkRef returns what is wrong with a reference, "" if it leads to a part of the document.
func checkRef(root any, ref, place string) string {
	fragment, own := strings.CutPrefix(ref, "#")
	if !own {
		return fmt.Sprintf("The $ref %.200q at %.200s leads to another document, and only references within "+
			"the document are resolved.", ref, place)
	}
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	at := root
	for step := range strings.SplitSeq(strings.TrimPrefix(fragment, "/"), "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		next, ok := childOf(at, step)
		if !ok {
			return fmt.Sprintf("The $ref %.200q at %.200s is broken: the document has no %.100q there.", ref, place, step)
		}
		at = next
	}
	return ""
}

// childOf returns a member of an object or of a list.
func childOf(at any, step string) (child any, ok bool) {
	switch at := at.(type) {
	case map[string]any:
		child, ok = at[step]
	case []any:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(at) {
			return at[i], true
		}
	}
	return child, ok
}
