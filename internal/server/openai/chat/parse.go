package chat

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/strictjson"
	"github.com/parley-server/parley/internal/turn"
)

// Incoming is a client's request, in the terms of a completion.
type Incoming struct {
	request.Checks
	Given   map[string]json.RawMessage
	Ignored []string // fields without a meaning here
	// Background requests a response before the turn has run.
	Background bool
	raw        []byte
}

// requestBody is a parsed request.
type requestBody struct {
	turn.Request
	model   string
	text    string
	more    bool   // the last message is the assistant's own: no new message to answer
	last    string // the last assistant message of the conversation; "": none
	stream  bool
	usage   bool              // report the usage in a stream
	files   []inlineFile      // in the message
	results []turn.ToolResult // of calls of the caller's tools; nil: the request is a message
	ignored []string
}

// namesChat reports whether the request names the chat.
func (q requestBody) namesChat() bool { return q.Session != uuid.Nil || q.CallerID != "" }

// Receive splits a body into members. The named fields have a meaning here.
func Receive(body []request.Member, raw []byte, understood []string) *Incoming {
	in := &Incoming{Given: request.ByName(body), raw: raw}
	for name, value := range in.Given {
		known := slices.Contains(understood, name) || slices.Contains(request.ExtensionFields, name) ||
			name == "store" && string(value) != "false" // a turn is always stored
		if !known && request.Printable(name) {
			in.Ignored = append(in.Ignored, request.Short(name))
		}
	}
	slices.Sort(in.Ignored)
	return in
}

// Keep removes the fields that have no meaning in the client's API, so that no other API's parser
// reads them.
func (in *Incoming) Keep(understood []string) {
	maps.DeleteFunc(in.Given, func(name string, _ json.RawMessage) bool {
		return !slices.Contains(understood, name) && !slices.Contains(request.ExtensionFields, name)
	})
}

// Member returns the only member of a field with a meaning here. The others are ignored.
func (in *Incoming) Member(field, name string) (value json.RawMessage, ok bool) {
	raw, ok := in.Given[field]
	if !ok || !in.Object("/"+field, raw) {
		return nil, false
	}
	for _, m := range request.Given(request.Members(raw)) {
		switch {
		case m.Name == name:
			value = m.Value
		case request.Printable(m.Name):
			in.Ignored = append(in.Ignored, field+"/"+request.Short(m.Name))
		}
	}
	return value, value != nil
}

// parseRequest parses a request and adds its mistakes to those that were found before.
func (s Service) parseRequest(r *server.Request, in *Incoming) (requestBody, error) {
	q := requestBody{model: in.Word("/model", request.OrEmptyText(in.Given["model"]), 200)}
	talk := in.parseConversation(r)
	q.text, q.more, q.last, q.results = talk.text, talk.more, talk.last, talk.results
	q.files = talk.files
	if raw, ok := in.Given["stream"]; ok {
		q.stream = in.Boolean("/stream", raw)
	}
	if raw, ok := in.Member("stream_options", "include_usage"); ok {
		q.usage = in.Boolean("/stream_options/include_usage", raw)
	}
	if raw, ok := in.Given["n"]; ok {
		in.Integer("/n", raw, 1, 1)
	}
	in.parseFormat(r)
	tools, options := in.parseTools(r)
	in.parseParameters(r, &options)
	in.setChatName(r)
	in.keepUser()
	q.ignored = in.Ignored
	if err := in.Err(); err != nil {
		return q, err
	}
	if q.results != nil { // tool results alone are not a message
		q.text = "?"
	}
	if err := s.resolveModel(r, q, in.Given); err != nil {
		return q, err
	}
	q.Request = request.ComposeMessage(&in.Checks, q.text, in.Given)
	options.Model.Effort = cmp.Or(options.Model.Effort, q.Options.Model.Effort)
	q.Tools, q.Options, q.Supplied = tools, options, talk.supplied
	q.IdempotencyKey = in.Once(r.Header.Values("Idempotency-Key"))
	return q, in.Err()
}

// The headers by which clients name a chat, the most reliable first. The field "user" comes last:
// some clients use it for a user, who has many chats.
var (
	chatHeaders = []string{"X-Openwebui-Chat-Id", "X-Session-Id"}
	chatFields  = []string{"conversation", "user"}
)

// setChatName copies the chat's name into the fields of a message.
func (in *Incoming) setChatName(r *server.Request) {
	delete(in.Given, "caller_id")
	for _, name := range slices.Backward(chatFields) {
		if value, ok := in.Given[name]; ok && string(value) != `""` {
			in.Given["caller_id"], r.Names["caller_id"] = value, name
		}
	}
	for _, name := range slices.Backward(chatHeaders) {
		value := filledHeader(r.Header.Get(name))
		if value == "" {
			continue
		}
		if !request.Printable(value) {
			in.Add(fault.Violation{Param: "/" + name, Rule: "format", Message: name + " must be printable ASCII characters."})
		}
		in.Given["caller_id"], r.Names["caller_id"] = request.QuoteText(value), name
	}
}

// keepUser keeps the field "user" as the end user if it can name one. The chat's name has checks of
// its own, and where a header gives it, clients send other values.
func (in *Incoming) keepUser() {
	raw, ok := in.Given["user"]
	if !ok {
		return
	}
	var text string
	if json.Unmarshal(raw, &text) != nil || strings.TrimSpace(text) == "" || utf8.RuneCountInString(text) > request.MaxUser ||
		!strictjson.IsText(raw) {
		delete(in.Given, "user")
	}
}

// parseFormat parses the format of the answer.
func (in *Incoming) parseFormat(r *server.Request) {
	raw, ok := in.Given["response_format"]
	if !ok || !in.Object("/response_format", raw) {
		return
	}
	format := request.ByName(request.Members(raw))
	switch in.OneOf("/response_format/type", request.OrEmptyText(format["type"]), "text", "json_object", "json_schema") {
	case "json_object":
		in.Given["response_schema"] = json.RawMessage(`{"type":"object"}`)
	case "json_schema":
		in.parseSchema(r, format["json_schema"])
	}
}

func (in *Incoming) parseSchema(r *server.Request, raw json.RawMessage) {
	if raw == nil || raw[0] != '{' {
		raw = json.RawMessage("{}")
	}
	schema, ok := request.ByName(request.Members(raw))["schema"]
	if r.Names["response_schema"] == "" {
		r.Names["response_schema"] = "response_format/json_schema/schema"
	}
	if !ok {
		in.Add(fault.Violation{Param: "/response_schema", Rule: "required", Message: "response_schema is missing."})
	}
	in.Given["response_schema"] = schema
}
