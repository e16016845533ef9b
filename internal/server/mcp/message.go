package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
)

// message is one JSON-RPC message: a request, which gets a response, or a notification. The SDK
// would change ids that do not fit a float64, so it never sees ids, and responses repeat them as
// they were sent.
type message struct {
	id     json.RawMessage // nil: a notification
	method string
	params []request.Member
	bad    *jsonrpc.Error // why it is refused

	name    string           // of the tool that is called
	token   json.RawMessage  // for progress; nil: not requested
	state   string           // what came with a question
	answers []request.Member // to questions, by their names
}

// wrong is an error of the protocol.
func wrong(code int64, format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// read parses a body; batched reports that it is a list of messages.
func read(body []byte) (list []message, batched bool, bad *jsonrpc.Error) {
	members, err := request.Object(body)
	if f := fault.From(err); f != nil && f.Code == fault.InvalidJSON {
		return nil, false, wrong(jsonrpc.CodeParseError, "%s", strings.Replace(f.Message, "The body", "The message", 1)) // parley mcp has it from a line
	}
	if err == nil {
		return []message{messageOf(members)}, false, nil
	}
	var texts []json.RawMessage
	if json.Unmarshal(body, &texts) != nil || texts == nil {
		return nil, false, noMessage()
	}
	for _, text := range texts {
		if !bytes.HasPrefix(text, []byte("{")) {
			list = append(list, message{bad: noMessage()})
			continue
		}
		list = append(list, messageOf(request.Members(text)))
	}
	return list, true, nil
}

func noMessage() *jsonrpc.Error {
	return wrong(jsonrpc.CodeInvalidRequest, "A message is an object with jsonrpc, method and, if it wants an answer, id.")
}

// messageOf reads the members that every message has. Errors found after the id carry the id.
func messageOf(members []request.Member) (m message) {
	in := make(map[string]json.RawMessage)
	for _, f := range members {
		in[f.Name] = f.Value
	}
	id, hasID := in["id"]
	method, hasMethod := in["method"]
	var version string
	switch {
	case hasID && !wordOrInteger(id):
		m.bad = wrong(jsonrpc.CodeInvalidRequest, "id must be a string or an integer.")
		return m
	case hasID:
		m.id = id
	}
	switch params := in["params"]; {
	case json.Unmarshal(in["jsonrpc"], &version) != nil || version != "2.0":
		m.bad = wrong(jsonrpc.CodeInvalidRequest, `jsonrpc must be "2.0".`)
	case !hasMethod && (in["result"] != nil || in["error"] != nil):
		m.bad = wrong(jsonrpc.CodeInvalidRequest, "This server sends no requests, and takes no responses.")
	case !hasMethod:
		m.bad = wrong(jsonrpc.CodeInvalidRequest, "method is missing.")
	case method[0] != '"':
		m.bad = wrong(jsonrpc.CodeInvalidRequest, "method must be a string.")
	case len(params) > 0 && params[0] != '{' && string(params) != "null":
		m.bad = wrong(jsonrpc.CodeInvalidParams, "params must be an object.")
	default:
		_ = json.Unmarshal(method, &m.method) // a string
		if len(params) > 0 && params[0] == '{' {
			m.params = request.Members(params)
		}
	}
	return m
}

var integer = regexp.MustCompile(`^-?[0-9]+$`)

// wordOrInteger reports whether a value is what ids and progress tokens can be.
func wordOrInteger(raw json.RawMessage) bool { return raw[0] == '"' || integer.Match(raw) }

// param is a parameter as it was sent, nil for none. null is none, too.
func (m *message) param(name string) json.RawMessage {
	for _, p := range m.params {
		if p.Name == name && string(p.Value) != "null" {
			return p.Value
		}
	}
	return nil
}

// repeated is the id that two of the messages have, nil for none.
func repeated(list []message) json.RawMessage {
	seen := make(map[any]bool)
	for _, m := range list {
		if m.id == nil {
			continue
		}
		var key any = json.Number(m.id)
		if m.id[0] == '"' {
			var text string
			_ = json.Unmarshal(m.id, &text)
			key = text
		}
		if seen[key] {
			return m.id
		}
		seen[key] = true
	}
	return nil
}
