package request

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/strictjson"
	"github.com/parley-server/parley/internal/turn"
)

// ExtensionFields are the fields of this service's own messages that a client of any dialect may
// add to its requests.
var ExtensionFields = []string{"session_id", "agent", "agent_version", "skill", "input", "secret_input", "response_schema", "attachments",
	"multitask_strategy", "limits", "effort", "user", "metadata"}

// ByName returns the members of an object that have a value: null counts as absent.
func ByName(body []Member) map[string]json.RawMessage {
	given := make(map[string]json.RawMessage, len(body))
	for _, m := range Given(body) {
		given[m.Name] = m.Value
	}
	return given
}

// OrEmptyText returns the value, or an empty text if it is absent, so that a check reports it.
func OrEmptyText(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage(`""`)
	}
	return raw
}

// maxIgnored is the maximum number of names that a response repeats: proxies limit the headers of a
// response to 4 KiB or more.
const maxIgnored = 20

// IgnoredFields lists the parts of a request that have no effect here: non-empty fields that are
// neither understood nor ExtensionFields, and system messages.
func IgnoredFields(given map[string]json.RawMessage, list []ChatMessage, understood ...string) (names []string) {
	for name, raw := range given {
		known := slices.Contains(understood, name) || slices.Contains(ExtensionFields, name) || slices.Contains([]string{"[]", "{}", `""`},
			string(raw))
		if !known && Printable(name) {
			names = append(names, Short(name))
		}
	}
	slices.Sort(names)
	if slices.ContainsFunc(list, func(m ChatMessage) bool { return m.Role == "system" || m.Role == "developer" }) {
		names = append(names, "system messages")
	}
	return names
}

// ReportIgnored sets the header that lists the ignored parts of a request: the first and the last of
// them, if there are many.
func ReportIgnored(w http.ResponseWriter, names []string) {
	if n := len(names) - maxIgnored; n > 0 {
		more := fmt.Sprintf("%d more", n)
		names = slices.Concat(names[:maxIgnored/2], []string{more}, names[len(names)-maxIgnored/2:])
	}
	if len(names) > 0 {
		w.Header().Set("X-Parley-Ignored", strings.Join(names, ", "))
	}
}

// ChatMessage is one message of a client's conversation. The client sends all of it with every
// request, and the service trusts only the last message.
type ChatMessage struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Parts   json.RawMessage `json:"parts"`
	Refusal json.RawMessage `json:"refusal"` // a refusal of the assistant

	Calls  json.RawMessage `json:"tool_calls"`   // calls of the assistant
	CallID string          `json:"tool_call_id"` // the call whose result this is

	// An item of OpenAI's Responses: a call, or the output of one.
	ItemCall  string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

// ChatMessages parses the field "messages".
func ChatMessages(c *Checks, raw json.RawMessage) []ChatMessage {
	var list []ChatMessage
	if strictjson.Unmarshal(raw, &list) != nil || len(list) == 0 {
		c.Add(fault.Violation{Param: "/messages", Rule: "type",
			Message: "messages must be an array of messages, each with a role, and hold at least one.", Expected: "array"})
		return nil
	}
	return list
}

// LastUserMessage returns the index of the last message of the user, and records a violation if
// there is none.
func LastUserMessage(c *Checks, list []ChatMessage) int {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Role == "user" {
			return i
		}
	}
	if list != nil {
		c.Add(fault.Violation{Param: "/messages", Rule: "required", Message: "messages contains no message of the user."})
	}
	return -1
}

// MessageText parses the content of a message: a string, or parts that are texts.
func MessageText(c *Checks, param string, raw json.RawMessage) string {
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
					Message: fmt.Sprintf("A part of the type %q cannot be read here. %s", Short(p.Type), remedy)})
			}
		}
		text = strings.Join(texts, "\n")
	}
	return text
}

// ComposeMessage builds the message of a chat from a text of the user and the other fields, in the
// terms of the API. The protocol has put the chat's name into "caller_id".
func ComposeMessage(c *Checks, text string, given map[string]json.RawMessage) turn.Request {
	fields := slices.Concat(ExtensionFields, []string{"command", "caller_id"})
	var body []Member
	for _, name := range fields {
		if raw, ok := given[name]; ok && name != "command" {
			body = append(body, Member{Name: name, Value: raw})
		}
	}
	if _, ok := given["skill"]; !ok {
		if strings.TrimSpace(text) == "" {
			c.Add(fault.Violation{Param: "/messages", Rule: "min_length", Message: "The last message of the user has no text.", Expected: 1})
			return turn.Request{}
		}
		body = append(body, Member{Name: "command", Value: QuoteText(text)})
	}
	return c.Message(body, fields).Request
}

// QuoteText returns a text as JSON.
func QuoteText(text string) json.RawMessage {
	raw, _ := json.Marshal(text) // a string cannot fail
	return raw
}
