package permission

import (
	"encoding/json"
	"slices"

	"github.com/parley-server/parley/internal/strictjson"
)

// maxInput is the maximum length of a call's input that is parsed; longer inputs match nothing.
const maxInput = 8 << 20

// decodeMembers parses a call's input: an object with only the known members, each at most once.
// The tool rejects an input with any other member.
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

// stringOf parses a member that is a string.
func stringOf(value json.RawMessage) (string, bool) {
	var s *string
	if json.Unmarshal(value, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}
