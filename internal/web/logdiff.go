package web

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// quietColumns change with every row, so they are not shown.
var quietColumns = []string{"updated_at", "created_at", "workspace_id", "revision"}

// changedFields returns the columns that differ, by name.
func changedFields(before, after json.RawMessage) []logField {
	was, now := columns(before), columns(after)
	var names []string
	for name := range was {
		names = append(names, name)
	}
	for name := range now {
		if _, ok := was[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var list []logField
	for _, name := range names {
		b, a := was[name], now[name]
		if b == a || slices.Contains(quietColumns, name) {
			continue
		}
		list = append(list, logField{name, b, a})
	}
	return list
}

// columns returns the values of a row as text. Null, which most columns of a new row are, is "".
func columns(row json.RawMessage) map[string]string {
	var raw map[string]json.RawMessage
	if json.Unmarshal(row, &raw) != nil {
		return nil
	}
	values := make(map[string]string, len(raw))
	for name, v := range raw {
		values[name] = columnText(v)
	}
	return values
}

func columnText(raw json.RawMessage) string {
	var s string
	var long struct {
		SHA256 string
		Bytes  int64
	}
	switch {
	case bytes.Equal(raw, []byte("null")):
		return ""
	case json.Unmarshal(raw, &s) == nil:
		return s
	case json.Unmarshal(raw, &long) == nil && len(long.SHA256) == 64:
		return byteSize(long.Bytes) + " of text, SHA-256 " + long.SHA256[:12] + "…"
	}
	return strings.TrimSpace(string(raw))
}
