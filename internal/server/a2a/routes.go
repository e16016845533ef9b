// Package a2a serves the Agent2Agent protocol: JSON-RPC 2.0 at one address, in its versions 0.3 and
// 1.0, HTTP+JSON in version 1.0, and the agent card beside it. A context is a session, a task is a
// turn, and the id of a message is its idempotency key.
//
// It promises: an unauthorized request is rejected with the error envelope of all protocols; every
// other response, errors included, is JSON-RPC with the caller's id, or has the form of HTTP+JSON;
// a task of another workspace is answered like one that does not exist; a stream is a function of
// the committed events, so a client that resumes with a frame's id misses none and gets none twice;
// no secret passes through here; a closed connection never stops a turn.
//
// Package message parses messages, task projects rows to frames, v03 has what differs in version
// 0.3, rpc has the errors and card the agent cards. call has one call, turns the methods that run a
// turn; the others are here.
package a2a

import (
	"net/http"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/a2a/call"
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
	routes := s.plainRoutes()
	routes[Path], routes[Path+"/"], routes[CardPath] = calls, calls, card
	return routes
}

// serve reads a request and responds to it. Once the body is read, all errors are JSON-RPC.
func (s *api) serve(w http.ResponseWriter, r *server.Request) error {
	body, err := request.ReadJSON(w, r.Request)
	if err != nil {
		return err
	}
	c := &call.Call{Server: s.Server, W: w, R: r.Request, Caller: r.Caller, Base: s.Base(r.Request)}
	if err := run(c, body); err != nil {
		return c.WriteError(err)
	}
	return nil
}
