package provider

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/parley-server/parley/internal/model"
)

// Messages returns the conversation with the beginning of an interrupted reply at its end: as the
// assistant's own message, and a request to continue. Providers differ in whether a reply can be
// prefilled; all of them understand this.
func Messages(req model.Request) []model.Message {
	if strings.TrimSpace(req.Partial) == "" {
		return req.Messages
	}
	return append(req.Messages[:len(req.Messages):len(req.Messages)],
		model.Message{Role: model.Assistant, Text: req.Partial},
		model.Message{Role: model.User, Text: Continue},
	)
}

// Continue asks a model to continue after an interruption.
const Continue = "Your reply was interrupted. Continue it exactly where it stopped: " +
	"write what comes next, without repeating anything and without mentioning the interruption."

// Object returns a tool's input or schema as a provider accepts it: fallback replaces anything but
// a JSON object.
func Object(raw json.RawMessage, fallback string) json.RawMessage {
	trimmed := strings.TrimSpace(string(raw))
	if !strings.HasPrefix(trimmed, "{") || !json.Valid([]byte(trimmed)) {
		return json.RawMessage(fallback)
	}
	return json.RawMessage(trimmed)
}

// Arguments returns a call's input as a provider accepts it in history.
func Arguments(input json.RawMessage) json.RawMessage {
	if object := Object(input, ""); len(object) > 0 {
		return object
	}
	if len(input) == 0 || !json.Valid(input) {
		return json.RawMessage(`{}`)
	}
	return json.RawMessage(`{"` + value + `":` + string(input) + `}`) // unchanged, see Form
}

// ToolName returns a name that every provider accepts in history. Otherwise, a model that once
// called a tool by an invalid name would break its session: providers reject every later request.
func ToolName(name string) string {
	name = strings.Map(func(c rune) rune {
		if isIDLetter(c) {
			return c
		}
		return '_'
	}, name)
	if name == "" {
		return "unknown"
	}
	return name[:min(len(name), 64)]
}

// CallID returns a call id that every provider accepts in history, so that a session can change its
// model. The same id always gives the same result.
func CallID(id string) string {
	if id != "" && len(id) <= 40 && !strings.ContainsFunc(id, func(c rune) bool { return !isIDLetter(c) }) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}

// CallIDs names the calls of one reply. Small servers omit ids or count from zero in every reply; a
// missing name, or one that this conversation already has, is replaced.
func CallIDs(req model.Request) func(id string) string {
	taken := map[string]bool{"": true}
	for _, m := range req.Messages {
		for _, c := range m.Calls {
			taken[c.ID] = true
		}
	}
	return func(id string) string {
		if taken[id] {
			id = "call_" + rand.Text()
		}
		taken[id] = true
		return id
	}
}

func isIDLetter(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}
