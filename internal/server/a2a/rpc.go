package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
)

// call is one call of a method.
type call struct {
	*api
	w       http.ResponseWriter
	r       *http.Request
	caller  server.Caller
	base    string // public address of the service
	version version
	id      json.RawMessage // as it came
	method  string
	streams bool // the method answers with a stream
	params  fields
	places  map[string]string // JSON Pointers to what has a name of its own elsewhere
	unfit   *rpcError         // what is asked for in a media type that there is not; nil: nothing
}

func (c *call) workspace() uuid.UUID { return c.caller.Workspace.ID }

// brief bounds what the call waits for the database.
func (c *call) brief() (context.Context, context.CancelFunc) { return c.Brief(c.r.Context()) }

// serve lets a request in. From where it is known to be JSON-RPC, errors are, too.
func (s *api) serve(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		return server.RejectMethod(w, r, "OPTIONS, POST")
	}
	caller, err := s.Authorize(w, r, server.Requirement{Scope: apikey.A2A, Class: ratelimit.Calls})
	if err != nil {
		return err
	}
	body, err := request.ReadJSON(w, r)
	if err != nil {
		return err
	}
	c := &call{api: s, w: w, r: r, caller: caller, base: s.Base(r), places: make(map[string]string)}
	if err := c.run(body); err != nil {
		return c.refuse(err)
	}
	return nil
}

// run reads the envelope and calls the method.
func (c *call) run(body []byte) error {
	if err := c.envelope(body); err != nil {
		return err
	}
	m, err := c.find()
	if err != nil {
		return err
	}
	c.streams = m.streams
	if err := request.Accepts(c.r, request.JSONType, request.StreamType); err != nil {
		return err
	}
	result, err := m.do(c)
	if err != nil || m.streams {
		return err
	}
	return c.answer(result)
}

// envelope reads a request of JSON-RPC. It reads the id first, so that
// every other error carries it.
func (c *call) envelope(body []byte) error {
	c.id = json.RawMessage("null")
	c.version, _ = versionOf(c.r) // for the words of an error
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) && json.Valid(body) {
		return &rpcError{Code: invalidRequest, Message: "A batch is not taken here. Send each request by itself."}
	}
	list, err := request.Object(body)
	if err != nil {
		f := fault.From(err)
		if f.Code == fault.InvalidJSON {
			return &rpcError{Code: parseError, Message: f.Message}
		}
		return &rpcError{Code: invalidRequest, Message: f.Message}
	}
	given := make(map[string]json.RawMessage)
	for _, m := range list {
		given[m.Name] = m.Value
	}
	id, named := given["id"]
	if !named || !identifies(id) {
		return &rpcError{Code: invalidRequest, Message: "id is missing, or neither a text nor a whole number. Every method here has an answer."}
	}
	c.id = id
	var version string
	if json.Unmarshal(given["jsonrpc"], &version) != nil || version != "2.0" {
		return &rpcError{Code: invalidRequest, Message: `jsonrpc must be "2.0".`}
	}
	if json.Unmarshal(given["method"], &c.method) != nil || c.method == "" {
		return &rpcError{Code: invalidRequest, Message: "method must be the name of a method."}
	}
	params := given["params"]
	switch {
	case len(params) == 0 || string(params) == "null":
		params = json.RawMessage("{}")
	case params[0] != '{':
		return &rpcError{Code: invalidParams, Message: "params must be an object."}
	}
	c.params = fieldsOf(&request.Checks{}, "", params)
	return nil
}

// identifies reports whether a value can name a request.
func identifies(id json.RawMessage) bool {
	if len(id) == 0 {
		return false
	}
	if id[0] == '"' {
		return true
	}
	_, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil
}

// answer writes a result down.
func (c *call) answer(result any) error {
	return server.WriteJSON(c.w, http.StatusOK, response{JSONRPC: "2.0", ID: c.id, Result: result})
}

// response is what a call that succeeds is answered, in streams once for each frame.
type response struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result"`
}
