package permission

import (
	"encoding/json"
	"slices"

	"github.com/parley-server/parley/internal/strictjson"
)

// maxInput bounds what is read of a call; longer inputs match nothing.
const maxInput = 8 << 20

// decodeMembers parses a call's input: an object with the known members only, each at most once. An
// input with any other member is one that the tool refuses.
func decodeMembers(input json.RawMessage, known ...string) (map[string]json.RawMessage, bool) {
	var found map[string]json.RawMessage
	if len(input) > maxInput || strictjson.Unmarshal(input, &found) != nil || found == nil {
		return nil, false
	}
	for name := range found {
		if !slices.Contains(known, name) {
			return nil, false
		}
	}
	return found, true
}

// stringOf reads a member that is a string.
func stringOf(value json.RawMessage) (string, bool) {
	var s *string
	if json.Unmarshal(value, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}
