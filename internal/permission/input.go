package permission

import (
	"bytes"
	"encoding/json"
	"slices"
)

// maxInput bounds what is read of a call; longer inputs match nothing.
const maxInput = 8 << 20

// members reads a call's input: an object with the known members only, each at most
// once. Tools read with encoding/json, which takes the last of two equal names, and
// "Command" for "command". What two readers could read differently is not read here.
func members(input json.RawMessage, known ...string) (map[string]json.RawMessage, bool) {
	if len(input) > maxInput || !json.Valid(input) {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(input))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	found := make(map[string]json.RawMessage, len(known))
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, false
		}
		key, _ := name.(string)
		if _, twice := found[key]; twice || !slices.Contains(known, key) {
			return nil, false
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return nil, false
		}
		found[key] = value
	}
	return found, true
}

// text reads a member that is a string.
func text(value json.RawMessage) (string, bool) {
	var s *string
	if json.Unmarshal(value, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

// printable reports whether s is ASCII without control characters.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
