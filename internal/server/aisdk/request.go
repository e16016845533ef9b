package aisdk

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/turn"
)

// requestBody is the parsed request of a chat: a message, or answers to the agent's questions and
// results of the client's own tools.
type requestBody struct {
	turn.Request
	answers []*verdict // none, and no results: a message
	results []turn.ToolResult
	text    string
	sent    []byte // the parts of the body that count
	ignored []string
}

// The triggers of a request. A regenerated message is sent again on purpose.
const (
	submit     = "submit-message"
	regenerate = "regenerate-message"
)

// understood are the fields that have a meaning here.
var understood = []string{"id", "messages", "trigger", "messageId"}

// schemas are the names of the member of a tool that has its schema: the one of this service's
// messages, and those of clients.
var schemas = []string{"input_schema", "inputSchema", "parameters"}

// parseRequest parses a request.
func parseRequest(body []request.Member, r *server.Request) (q requestBody, err error) {
	var c request.Checks
	given := request.ByName(body)
	delete(given, "caller_id")
	if id, ok := given["id"]; ok {
		given["caller_id"], r.Names["caller_id"] = id, "id"
	}
	trigger := submit
	if raw, ok := given["trigger"]; ok {
		trigger = c.OneOf("/trigger", raw, submit, regenerate)
	}
	messageID := ""
	if raw, ok := given["messageId"]; ok {
		messageID, _ = c.Text("/messageId", raw)
	}
	list := request.ChatMessages(&c, given["messages"])
	q.ignored = request.IgnoredFields(given, list, append(understood, "caller_id", "tools")...)
	if i := continuedMessage(list, trigger, messageID); i >= 0 {
		at := fmt.Sprintf("/messages/%d/parts", i)
		q.answers, q.results = parseVerdicts(&c, at, list[i].Parts), parseResults(&c, at, list[i].Parts)
		if len(answeredParts(list[i].Parts)) == 0 && len(q.results) == 0 {
			c.Add(fault.Violation{Param: at, Rule: "required", Message: "The last message is the assistant's own. It answers none of its requests " +
				"for an approval and has no result of a call of your own tools. Send a message of the user."})
		}
		q.Request = request.ComposeMessage(&c, "-", given) // for the name of the chat
		return q, c.Err()
	}
	i := request.LastUserMessage(&c, list)
	if i < 0 {
		return q, c.Err()
	}
	r.Names["command"] = fmt.Sprintf("messages/%d/parts", i)
	if list[i].Parts == nil {
		r.Names["command"] = fmt.Sprintf("messages/%d/content", i)
	}
	q.text = messageText(&c, "/"+r.Names["command"], list[i])
	q.Request = request.ComposeMessage(&c, q.text, given)
	if raw, ok := given["tools"]; ok {
		q.Tools = c.ClientTools("/tools", raw, schemas...)
	}
	q.sent = identifyingParts(given, list[i])
	q.IdempotencyKey = c.Once(r.Header.Values("Idempotency-Key"))
	if q.IdempotencyKey == "" && list[i].ID != "" && messageID == "" && trigger == submit {
		// A message that is edited or repeated keeps its id.
		sum := sha256.Sum256(q.sent)
		q.IdempotencyKey = "ui-chat:" + hex.EncodeToString(sum[:])
	}
	return q, c.Err()
}

// identifyingParts returns the parts of a request that identify it when it is sent again: all but
// the history and the tools, which follow what a page shows.
func identifyingParts(given map[string]json.RawMessage, m request.ChatMessage) []byte {
	kept := make(map[string]any)
	for name, raw := range given {
		if name != "messages" && (slices.Contains(understood, name) || slices.Contains(request.ExtensionFields, name)) {
			kept[name] = raw
		}
	}
	kept["message"] = m
	raw, _ := json.Marshal(kept) // all of it was parsed from JSON
	return raw
}

// continuedMessage returns the index of the assistant message to continue: the one that messageId
// names if it holds an answer, else the last. It is -1 if a user message follows.
func continuedMessage(list []request.ChatMessage, trigger, messageID string) int {
	if trigger == regenerate {
		return -1
	}
	for i, m := range list {
		if messageID != "" && m.ID == messageID && m.Role == "assistant" && (len(answeredParts(m.Parts)) > 0 || len(resultParts(m.Parts)) > 0) {
			return i
		}
	}
	if n := len(list) - 1; n >= 0 && list[n].Role == "assistant" {
		return n
	}
	return -1
}

// messageText returns the text of a message, which has parts since AI SDK 5.
func messageText(c *request.Checks, param string, m request.ChatMessage) string {
	if m.Parts == nil {
		return request.MessageText(c, param, m.Content)
	}
	return request.MessageText(c, param, m.Parts)
}
