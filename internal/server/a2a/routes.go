// Package a2a serves the Agent2Agent protocol: JSON-RPC 2.0 at one address, in its versions
// 0.3 and 1.0, and the agent card beside it. A context is a session, a task is a turn, and
// the id of a message is its idempotency key.
//
// It promises: an unauthorized request is rejected with the error envelope of all protocols; every
// other response, errors included, is JSON-RPC with the caller's id; a task of another workspace is
// answered like one that does not exist; a stream is a function of the committed events, so a
// client that resumes with a frame's id misses none and gets none twice; no secret passes through
// here; a closed connection never stops a turn.
//
// Package message parses messages, task projects rows to frames, v03 has what differs in version 0.3,
// rpc has the errors and card the agent cards. The methods are here.
package a2a

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/a2a/message"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
)

// The paths of the handlers.
const (
	Path     = "/a2a"
	CardPath = "/.well-known/agent-card.json"
)

// api has the handlers.
type api struct {
	*server.Server
	noCard bool // no agent card without a key
}

// New returns the handlers. publicCard serves an agent card without a key.
func New(srv *server.Server, publicCard bool) server.Routes {
	s := &api{Server: srv, noCard: !publicCard}
	calls := s.HandleMethods(map[string]server.Operation{http.MethodPost: {Scope: apikey.A2A, Class: ratelimit.Calls, Serve: s.serve}})
	card := s.HandleMethods(map[string]server.Operation{http.MethodGet: {Public: true, Serve: s.serveCard}})
	// Some clients append / to the address.
	return server.Routes{Path: calls, Path + "/": calls, CardPath: card}
}

// call is one call of a method.
type call struct {
	*api
	w       http.ResponseWriter
	r       *http.Request
	caller  server.Caller
	base    string // public address of the service
	version *version
	id      json.RawMessage // as it was sent
	method  string
	streams bool // the method answers with a stream
	params  request.Fields
	parser  message.Parser
}

func (c *call) workspace() uuid.UUID { return c.caller.Workspace.ID }

// brief limits the call's waits for the database.
func (c *call) brief() (context.Context, context.CancelFunc) { return c.Brief(c.r.Context()) }

// serve reads a request and responds to it. Once the body is read, all errors are JSON-RPC.
func (s *api) serve(w http.ResponseWriter, r *server.Request) error {
	body, err := request.ReadJSON(w, r.Request)
	if err != nil {
		return err
	}
	c := &call{api: s, w: w, r: r.Request, caller: r.Caller, base: s.Base(r.Request)}
	if err := c.run(body); err != nil {
		return c.writeError(err)
	}
	return nil
}
