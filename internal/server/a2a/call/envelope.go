package call

import (
	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server/a2a/message"
	"github.com/parley-server/parley/internal/server/a2a/rpc"
	"github.com/parley-server/parley/internal/server/jsonrpc"
	"github.com/parley-server/parley/internal/server/request"
)

// Parse parses a request of JSON-RPC. Every method here has a response, so every request
// needs an id.
func (c *Call) Parse(body []byte) error {
	c.Version, _ = VersionOf(c.R) // selects the form of an error
	list, batch, err := jsonrpc.Parse(body)
	if err != nil {
		return &rpc.Error{Code: err.Code, Message: err.Message}
	}
	if batch {
		return &rpc.Error{Code: jsonrpc.InvalidRequest, Message: "Batches are not supported. Send each request by itself."}
	}
	m := list[0]
	c.ID, c.Method = m.ID, m.Method
	c.Params = request.Fields{Checks: new(request.Checks), Members: request.Given(m.Params), ProtoJSON: true}
	c.Parser = message.Parser{Params: c.Params, Places: make(map[string]string), Workspace: c.Caller.Workspace.Slug}
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

// TaskID reads the id of a task. A malformed id is not found.
func (c *Call) TaskID(name string) (uuid.UUID, error) {
	text := c.Params.RequiredString(name, 255)
	if err := c.Params.Err(); err != nil {
		return uuid.Nil, err
	}
	id, ok := request.ID(text)
	if !ok {
		return uuid.Nil, rpc.NoTask(text)
	}
	return id, nil
}
