package chat

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/strictjson"
	"github.com/parley-server/parley/internal/turn"
)

// Extensions are the fields of this service's own messages that a client of any dialect may
// add to its requests.
var Extensions = []string{"session_id", "skill", "input", "secret_input", "response_schema", "attachments", "multitask_strategy", "limits"}

// Given are the members of an object that say something: null stands for nothing.
func Given(body []request.Member) map[string]json.RawMessage {
	given := make(map[string]json.RawMessage, len(body))
	for _, m := range request.Given(body) {
		given[m.Name] = m.Value
	}
	return given
}

// OrEmpty is a value, or an empty text where there is none: then a check says what is missing.
func OrEmpty(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage(`""`)
	}
	return raw
}

// maxIgnored is how many names an answer repeats.
const maxIgnored = 20

// Ignored lists what a request says that means nothing here: fields that hold something and are
// neither understood nor Extensions, and messages of the system.
func Ignored(given map[string]json.RawMessage, list []Message, understood ...string) (names []string) {
	for name, raw := range given {
		known := slices.Contains(understood, name) || slices.Contains(Extensions, name) || slices.Contains([]string{"[]", "{}", `""`}, string(raw))
		if !known && request.Printable(name) {
			names = append(names, request.Short(name))
		}
	}
	slices.Sort(names)
	names = names[:min(len(names), maxIgnored)]
	if slices.ContainsFunc(list, func(m Message) bool { return m.Role == "system" || m.Role == "developer" }) {
		names = append(names, "system messages")
	}
	return names
}

// Ignore says what of a request means nothing here.
func Ignore(w http.ResponseWriter, names []string) {
	if len(names) > 0 {
		w.Header().Set("X-Parley-Ignored", strings.Join(names, ", "))
	}
}

// Message is one message of the conversation that a client keeps. It is sent as a whole with
// every request, and this service believes none of it but the last message.
type Message struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Parts   json.RawMessage `json:"parts"`
	Refusal json.RawMessage `json:"refusal"` // of the assistant
}

// Messages reads the field "messages".
func Messages(c *request.Checks, raw json.RawMessage) []Message {
	var list []Message
	if strictjson.Unmarshal(raw, &list) != nil || len(list) == 0 {
		c.Add(fault.Violation{Param: "/messages", Rule: "type", Message: "messages must be an array of messages, each with a role, and hold at least one.", Expected: "array"})
		return nil
	}
	return list
}

// Asked is the index of the last message of the user, and notes where there is none.
func Asked(c *request.Checks, list []Message) int {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Role == "user" {
			return i
		}
	}
	if list != nil {
		c.Add(fault.Violation{Param: "/messages", Rule: "required", Message: "messages holds none of the user: there is nothing to answer."})
	}
	return -1
}

// Text reads the content of a message: a string, or parts of which each is a text.
func Text(c *request.Checks, param string, raw json.RawMessage) string {
	var text string
	if strictjson.Unmarshal(raw, &text) != nil {
		var parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if strictjson.Unmarshal(raw, &parts) != nil {
			c.Add(fault.Violation{Param: param, Rule: "type", Message: "The content of a message is a text, or parts.", Expected: "string"})
			return ""
		}
		var texts []string
		for i, p := range parts {
			switch p.Type {
			case "text", "input_text":
				texts = append(texts, p.Text)
			case "step-start":
			default:
				remedy := "Upload files with POST …/files and name them in attachments."
				if strings.HasPrefix(p.Type, "data-") {
					remedy = "Say it as text, or leave it out."
				}
				c.Add(fault.Violation{Param: fmt.Sprintf("%s/%d", param, i), Rule: "enum", Allowed: []any{"text"},
					Message: fmt.Sprintf("A part of the type %q cannot be read here. %s", request.Short(p.Type), remedy)})
			}
		}
		text = strings.Join(texts, "\n")
	}
	return text
}

// Reason reads why somebody denies a call.
func Reason(c *request.Checks, at string, raw json.RawMessage) string {
	if raw == nil {
		return ""
	}
	text, _ := c.Text(at, raw)
	if utf8.RuneCountInString(text) > request.MaxReason {
		c.Longer(at, "characters", request.MaxReason)
	}
	return strings.TrimSpace(event.Plain(text))
}

// Compose makes the message that is sent in a chat: a text of the user, in the words of the
// interface, with what else was given. The door has put the chat's name into "caller_id".
func Compose(c *request.Checks, text string, given map[string]json.RawMessage) turn.Request {
	fields := slices.Concat(Extensions, []string{"command", "caller_id"})
	var body []request.Member
	for _, name := range fields {
		if raw, ok := given[name]; ok && name != "command" {
			body = append(body, request.Member{Name: name, Value: raw})
		}
	}
	if _, ok := given["skill"]; !ok {
		if strings.TrimSpace(text) == "" {
			c.Add(fault.Violation{Param: "/messages", Rule: "min_length", Message: "The last message of the user has no text.", Expected: 1})
			return turn.Request{}
		}
		body = append(body, request.Member{Name: "command", Value: Quote(text)})
	}
	return c.Message(body, fields).Request
}

// Quote writes a text as JSON.
func Quote(text string) json.RawMessage {
	raw, _ := json.Marshal(text) // a string always can be
	return raw
}
