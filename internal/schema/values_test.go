package schema_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %v: %v", v, err))
	}
	return data
}

type object = map[string]any

var (
	members = []string{"a", "b", "c", "x/y", "m~n", ""}
	texts   = []string{"", "a", "b", "ab", "abc", "true", "1", "äöü", "2024-02-29", "2023-02-29", "12:00:00Z", "2024-01-01T00:00:00Z",
		"a@b.example", "::1", "1.2.3.4", "http://a.example/"}
	numbers = []any{0, -1, 1, 2, 3, 10, 1.5, -0.5, 1e22, json.Number("1.0"), json.Number("-0"), json.Number("20e-1"), 9007199254740991}
	shapes  = []string{"^a", "b$", "^[a-c]*$", "", "^.{2,3}$", `^\d+$`}
	formats = []string{"date", "time", "date-time", "email", "ipv4", "ipv6", "uri", "uuid", "unheard-of"}
	kinds   = []string{"null", "boolean", "object", "array", "number", "string", "integer"}
)

// drawValue draws a value with at most depth levels.
func drawValue(t *rapid.T, depth int) any {
	pick := rapid.IntRange(0, 8).Draw(t, "kind of value")
	switch {
	case pick == 0:
		return nil
	case pick == 1:
		return rapid.Bool().Draw(t, "bool")
	case pick == 2 || pick == 3 || depth == 0 && pick > 6:
		return rapid.SampledFrom(numbers).Draw(t, "number")
	case pick == 4 || pick == 5 || depth == 0:
		return rapid.SampledFrom(texts).Draw(t, "text")
	case pick == 6:
		items := []any{}
		for range rapid.IntRange(0, 4).Draw(t, "items") {
			items = append(items, drawValue(t, depth-1))
		}
		return items
	default:
		o := object{}
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			o[rapid.SampledFrom(members).Draw(t, "name")] = drawValue(t, depth-1)
		}
		return o
	}
}

// bend changes a value in one place.
func bend(t *rapid.T, v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for k, m := range v {
			out[k] = m
		}
		names := make([]string, 0, len(v))
		for k := range v {
			names = append(names, k)
		}
		slices.Sort(names)
		names = append(names, members...)
		name := rapid.SampledFrom(names).Draw(t, "member to change")
		old, there := out[name]
		switch {
		case there && rapid.Bool().Draw(t, "leave out"):
			delete(out, name)
		case there:
			out[name] = bend(t, old)
		default:
			out[name] = drawValue(t, 1)
		}
		return out
	case []any:
		out := slices.Clone(v)
		if len(out) > 0 && rapid.Bool().Draw(t, "change an item") {
			i := rapid.IntRange(0, len(out)-1).Draw(t, "item")
			out[i] = bend(t, out[i])
			return out
		}
		if len(out) > 0 && rapid.Bool().Draw(t, "repeat an item") {
			return append(out, out[0])
		}
		return append(out, drawValue(t, 1))
	default:
		return drawValue(t, 1)
	}
}

// there reports whether a JSON pointer refers to a place in a value.
func there(v any, path string) bool {
	if path == "" {
		return true
	}
	for _, name := range strings.Split(path[1:], "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch w := v.(type) {
		case object:
			m, ok := w[name]
			if !ok {
				return false
			}
			v = m
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i < 0 || i >= len(w) {
				return false
			}
			v = w[i]
		default:
			return false
		}
	}
	return true
}
