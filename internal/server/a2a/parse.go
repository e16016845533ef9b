package a2a

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/a2a/message"
	"github.com/parley-server/parley/internal/server/a2a/rpc"
	"github.com/parley-server/parley/internal/server/jsonrpc"
	"github.com/parley-server/parley/internal/server/request"
)

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
	c.version, _ = versionOf(c.r) // selects the form of an error
	list, batch, err := jsonrpc.Parse(body)
	if err != nil {
		return &rpc.Error{Code: err.Code, Message: err.Message}
	}
	if batch {
		return &rpc.Error{Code: jsonrpc.InvalidRequest, Message: "Batches are not supported. Send each request by itself."}
	}
	m := list[0]
	c.id, c.method = m.ID, m.Method
	c.params = request.Fields{Checks: new(request.Checks), Members: request.Given(m.Params), ProtoJSON: true}
	c.parser = message.Parser{Params: c.params, Places: make(map[string]string), Workspace: c.caller.Workspace.Slug}
	switch {
	case m.Err != nil:
		return &rpc.Error{Code: m.Err.Code, Message: m.Err.Message}
	case m.ID == nil:
		return &rpc.Error{Code: jsonrpc.InvalidRequest, Message: "id is missing. Every method here has a response."}
	case m.Method == "":
		return &rpc.Error{Code: jsonrpc.InvalidRequest, Message: "method is empty."}
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
		return uuid.Nil, rpc.NoTask(text)
	}
	return id, nil
}
