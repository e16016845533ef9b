package model

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/strictjson"
)

// malformed is the only member of an input that could not be parsed.
const malformed = "_malformed"

// Input returns the canonical form of a tool's input, from the model's text: this form is stored,
// shown in approvals, matched by patterns and passed to the tool. Empty text is the empty object.
// Anything but a JSON object with distinct names becomes {"_malformed":"the model's text"}: the
// turn continues, and Malformed lets the call be rejected with an explanation.
func Input(written string) json.RawMessage {
	raw := bytes.TrimSpace([]byte(strings.ToValidUTF8(written, "\uFFFD")))
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage(`{}`)
	}
	if raw[0] == '{' {
		if canonical, err := strictjson.Canonical(raw); err == nil {
			return event.OneLine(canonical)
		}
	}
	cut, _ := event.CutOutput(string(raw))
	wrapped, err := json.Marshal(map[string]string{malformed: cut})
	if err != nil { // a map of strings always marshals
		return json.RawMessage(`{"` + malformed + `":""}`)
	}
	return wrapped
}

// Malformed reports whether the model's arguments were not a JSON object with distinct names, and
// returns the beginning of the model's text.
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
