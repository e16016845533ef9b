// Package jsonrpc parses and writes the envelopes of JSON-RPC 2.0 for the protocols that use it. A
// response repeats the id byte for byte: as a float64, an id beyond 2^53 would change.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
)

// The codes of JSON-RPC. A protocol adds its own.
const (
	ParseError     = -32700
	InvalidRequest = -32600
	MethodNotFound = -32601
	InvalidParams  = -32602
	InternalError  = -32603
)

// Error is the error of a response.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// Errorf returns an error with a code and a formatted message.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%d %s", e.Code, e.Message) }

// Message is a request, or a notification.
type Message struct {
	ID     json.RawMessage // as it was sent; nil for a notification
	Method string
	Params []request.Member // nil if there are none
	// Err reports that the message is invalid. ID is set if it is valid.
	Err *Error
}

// Parse parses a body: one message, or with batch a list of them. An invalid message in it has its
// own error; err reports that the body has no message at all.
func Parse(body []byte) (list []Message, batch bool, err *Error) {
	members, failed := request.Object(body)
	if f := fault.From(failed); f != nil && f.Code == fault.InvalidJSON {
		return nil, false, Errorf(ParseError, "%s", strings.Replace(f.Message, "The body", "The message", 1))
	}
	if failed == nil {
		return []Message{parseMessage(members)}, false, nil
	}
	var texts []json.RawMessage
	if json.Unmarshal(body, &texts) != nil || texts == nil {
		return nil, false, notMessage()
	}
	for _, text := range texts {
		if !bytes.HasPrefix(text, []byte("{")) {
			list = append(list, Message{Err: notMessage()})
			continue
		}
		list = append(list, parseMessage(request.Members(text)))
	}
	return list, true, nil
}

func notMessage() *Error {
	return Errorf(InvalidRequest, "A message is an object with jsonrpc, method and, for a response, id.")
}

// parseMessage parses the members of a message. It reads the id first, so that every later error
// has it.
func parseMessage(members []request.Member) (m Message) {
	in := make(map[string]json.RawMessage)
	for _, f := range members {
		in[f.Name] = f.Value
	}
	id, hasID := in["id"]
	method, hasMethod := in["method"]
	if hasID && !IsID(id) {
		m.Err = Errorf(InvalidRequest, "id must be a string or an integer.")
		return m
	}
	m.ID = id
	var version string
	switch params := in["params"]; {
	case json.Unmarshal(in["jsonrpc"], &version) != nil || version != "2.0":
		m.Err = Errorf(InvalidRequest, `jsonrpc must be "2.0".`)
	case !hasMethod && (in["result"] != nil || in["error"] != nil):
		m.Err = Errorf(InvalidRequest, "This server sends no requests and accepts no responses.")
	case !hasMethod:
		m.Err = Errorf(InvalidRequest, "method is missing.")
	case method[0] != '"':
		m.Err = Errorf(InvalidRequest, "method must be a string.")
	case len(params) > 0 && params[0] != '{' && string(params) != "null":
		m.Err = Errorf(InvalidParams, "params must be an object.")
	default:
		_ = json.Unmarshal(method, &m.Method) // a string
		if len(params) > 0 && params[0] == '{' {
			m.Params = request.Members(params)
		}
	}
	return m
}

var integer = regexp.MustCompile(`^-?[0-9]+$`)

// IsID reports whether a value can identify a request: a string or an integer of any size.
func IsID(raw json.RawMessage) bool { return raw[0] == '"' || integer.Match(raw) }

// Result returns the response of a request that succeeded.
func Result(id json.RawMessage, result any) any {
	return struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}{"2.0", id, result}
}

// Failure returns the response of a request that failed. id is nil if it is not known.
func Failure(id json.RawMessage, err *Error) any {
	if id == nil {
		id = json.RawMessage("null")
	}
	return struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *Error          `json:"error"`
	}{"2.0", id, err}
}
