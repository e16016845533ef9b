package transport

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/server/jsonrpc"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/strictjson"
)

// message is a request or a notification of the protocol. The SDK never sees ids: it would change
// those that do not fit a float64.
type message struct {
	jsonrpc.Message

	name    string           // name of the called tool
	token   json.RawMessage  // for progress; nil: not requested
	state   string           // request state of a question
	answers []request.Member // to questions, by their names
}

// rawParam returns a parameter as it was sent, nil if it is absent or null.
func (m *message) rawParam(name string) json.RawMessage {
	for _, p := range m.Params {
		if p.Name == name && string(p.Value) != "null" {
			return p.Value
		}
	}
	return nil
}

// checkMessage rejects a message that cannot have a result, as far as that is known without its
// tool.
func (s *Handler) checkMessage(m *message, revision string, h http.Header) *jsonrpc.Error {
	known := slices.Contains(methodsOf(revision), m.Method)
	switch {
	case m.Err != nil:
		return m.Err
	case m.ID == nil && known:
		return jsonrpc.Errorf(jsonrpc.InvalidRequest, "%s is a request: it needs an id.", m.Method)
	case m.ID == nil: // a notification: none has an effect here
		return nil
	case !known:
		return jsonrpc.Errorf(jsonrpc.MethodNotFound, "Unknown method %q in the revision %s. There are %s.", request.Short(m.Method),
			revision, strings.Join(methodsOf(revision), ", "))
	}
	if bad := m.parseMeta(); bad != nil {
		return bad
	}
	switch m.Method {
	case "initialize":
		if bad := m.checkInitialize(); bad != nil {
			return bad
		}
	case "tools/list":
		if raw := m.rawParam("cursor"); raw != nil && string(raw) != `""` {
			return jsonrpc.Errorf(jsonrpc.InvalidParams, "params.cursor leads nowhere: all tools are on the first page.")
		}
	case "tools/call":
		if bad := s.parseToolCall(m); bad != nil {
			return bad
		}
	}
	return m.checkRevision(revision, h)
}

// checkInitialize checks the parameters of initialize.
func (m *message) checkInitialize() *jsonrpc.Error {
	if raw := m.rawParam("protocolVersion"); raw == nil || raw[0] != '"' {
		return jsonrpc.Errorf(jsonrpc.InvalidParams, "params.protocolVersion must be a string.")
	}
	if err := strictjson.Unmarshal(m.bodyForSDK(), new(mcp.InitializeParams)); err != nil {
		what := "params are"
		if bad, ok := errors.AsType[*strictjson.Error](err); ok && bad.Pointer != "" {
			what = "params" + strings.ReplaceAll(bad.Pointer, "/", ".") + " is"
		}
		return jsonrpc.Errorf(jsonrpc.InvalidParams, "%s not what initialize takes.", what)
	}
	return nil
}

// parseMeta parses _meta of a request. The SDK gets only the members that the protocol defines: it
// could fail on the others, which are not used.
func (m *message) parseMeta() *jsonrpc.Error {
	raw := m.rawParam("_meta")
	if raw == nil {
		return nil
	}
	if raw[0] != '{' {
		return jsonrpc.Errorf(jsonrpc.InvalidParams, "params._meta must be an object.")
	}
	own := make(map[string]json.RawMessage)
	for _, f := range request.Members(raw) {
		if strings.HasPrefix(f.Name, "io.modelcontextprotocol/") {
			own[f.Name] = f.Value
		}
		if f.Name != "progressToken" || string(f.Value) == "null" {
			continue
		}
		if !jsonrpc.IsID(f.Value) {
			return jsonrpc.Errorf(jsonrpc.InvalidParams, "params._meta.progressToken must be a string or an integer.")
		}
		m.token = f.Value
	}
	text, _ := json.Marshal(own) // it was parsed from JSON
	m.Params = append(slices.DeleteFunc(m.Params, func(p request.Member) bool { return p.Name == "_meta" }), request.Member{Name: "_meta",
		Value: text})
	return nil
}

// parseToolCall parses a tool call. The SDK never sees the answers to questions.
func (s *Handler) parseToolCall(m *message) *jsonrpc.Error {
	for _, p := range []struct {
		name string
		text *string
	}{{"name", &m.name}, {"requestState", &m.state}} {
		raw := m.rawParam(p.name)
		if raw != nil && raw[0] != '"' {
			return jsonrpc.Errorf(jsonrpc.InvalidParams, "params.%s must be a string.", p.name)
		}
		_ = json.Unmarshal(raw, p.text)
	}
	args, answers := m.rawParam("arguments"), m.rawParam("inputResponses")
	switch {
	case m.rawParam("name") == nil:
		return jsonrpc.Errorf(jsonrpc.InvalidParams, "params.name is missing: the tool that shall be called.")
	case !slices.Contains(s.tools, m.name):
		return jsonrpc.Errorf(jsonrpc.InvalidParams, "Unknown tool %q. There are %s.", request.Short(m.name), strings.Join(s.tools, ", "))
	case args != nil && args[0] != '{':
		return jsonrpc.Errorf(jsonrpc.InvalidParams, "params.arguments must be an object.")
	case answers != nil && answers[0] != '{':
		return jsonrpc.Errorf(jsonrpc.InvalidParams, "params.inputResponses must be an object.")
	case answers != nil && m.state == "":
		return jsonrpc.Errorf(jsonrpc.InvalidParams,
			"params.inputResponses answers a question: params.requestState, which came with the question, must be sent with it.")
	}
	if answers != nil {
		m.answers = request.Members(answers)
	}
	m.Params = slices.DeleteFunc(m.Params, func(p request.Member) bool { return p.Name == "inputResponses" || p.Name == "requestState" })
	return nil
}

// bodyForSDK is what is left of the parameters, for the SDK.
func (m *message) bodyForSDK() json.RawMessage {
	in := make(map[string]json.RawMessage)
	for _, p := range m.Params {
		if string(p.Value) != "null" {
			in[p.Name] = p.Value
		}
	}
	text, _ := json.Marshal(in) // it was parsed from JSON
	return text
}
