package a2a

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/jsonrpc"
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
	id      json.RawMessage // as it was sent
	method  string
	streams bool // the method answers with a stream
	params  request.Fields
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

// run parses the envelope and calls the method.
func (c *call) run(body []byte) error {
	if err := c.parseEnvelope(body); err != nil {
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
	return server.WriteJSON(c.w, http.StatusOK, jsonrpc.Result(c.id, result))
}

// parseEnvelope parses a request of JSON-RPC. Every method here has a response, so every request
// needs an id.
func (c *call) parseEnvelope(body []byte) error {
	c.version, _ = versionOf(c.r) // for the form of an error
	list, batch, err := jsonrpc.Parse(body)
	if err != nil {
		return &rpcError{Code: err.Code, Message: err.Message}
	}
	if batch {
		return &rpcError{Code: jsonrpc.InvalidRequest, Message: "Batches are not supported. Send each request by itself."}
	}
	m := list[0]
	c.id, c.method = m.ID, m.Method
	c.params = request.Fields{Checks: new(request.Checks), Members: request.Given(m.Params), ProtoJSON: true}
	switch {
	case m.Err != nil:
		return &rpcError{Code: m.Err.Code, Message: m.Err.Message}
	case m.ID == nil:
		return &rpcError{Code: jsonrpc.InvalidRequest, Message: "id is missing. Every method here has a response."}
	case m.Method == "":
		return &rpcError{Code: jsonrpc.InvalidRequest, Message: "method is empty."}
	}
	return nil
}

// taskID reads the id of a task. A malformed id is not found.
func (c *call) taskID(name string) (uuid.UUID, error) {
	text := c.params.RequiredString(name, 255)
	if err := c.params.Err(); err != nil {
		return uuid.Nil, err
	}
	id, ok := request.ID(text)
	if !ok {
		return uuid.Nil, noTask(text)
	}
	return id, nil
}

// rejectForeign notes fields by the names that another version has for them: their values would be
// lost.
func rejectForeign(f request.Fields, v version, names map[string]string) bool {
	found := false
	for name, here := range names {
		if f.Has(name) {
			found = true
			f.Add(fault.Violation{Param: f.Pointer(name), Rule: "unknown", Suggestion: here,
				Message: name + " is a field of another version of A2A. In " + string(v) + " it is " + here + "."})
		}
	}
	return found
}
