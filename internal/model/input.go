package model

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/parley-server/parley/internal/event"
)

// malformed is the only member of an input that could not be read.
const malformed = "_malformed"

// Input makes a tool's input from what a model wrote. Nothing at all is the
// empty object. What is no JSON object becomes {"_malformed":"what it wrote"}:
// the turn goes on, and Malformed lets the call be refused with an explanation.
func Input(written string) json.RawMessage {
	raw := bytes.TrimSpace([]byte(strings.ToValidUTF8(written, "\uFFFD")))
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage(`{}`)
	}
	if raw[0] == '{' && json.Valid(raw) {
		return raw
	}
	cut, _ := event.CutOutput(string(raw))
	wrapped, err := json.Marshal(map[string]string{malformed: cut})
	if err != nil { // a map of strings always marshals
		return json.RawMessage(`{"` + malformed + `":""}`)
	}
	return wrapped
}

// Malformed reports whether the model's arguments were no JSON object, and the
// beginning of what it wrote instead.
func Malformed(input json.RawMessage) (written string, ok bool) {
	if !bytes.Contains(input, []byte(malformed)) {
		return "", false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil || len(members) != 1 || members[malformed] == nil {
		return "", false
	}
	return written, json.Unmarshal(members[malformed], &written) == nil
}
