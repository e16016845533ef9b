// Package a2a serves the Agent2Agent protocol: JSON-RPC 2.0 at one address, in its versions
// 0.3 and 1.0, and the agent card beside it. A context is a session, a task is a turn, and
// the id of a message is its idempotency key.
//
// It promises: an unauthorized request is rejected with the error envelope of all protocols; every
// other response, errors included, is JSON-RPC with the caller's id; a task of another workspace is
// answered like one that does not exist; a stream is a function of the committed events, so a
// client that resumes with a frame's id misses none and gets none twice; no secret passes through
// here; a closed connection never stops a turn.
package a2a

import (
	"github.com/parley-server/parley/internal/server"
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
	calls := s.Handler(s.serve)
	// Some clients join the address and the path /.
	return server.Routes{Path: calls, Path + "/": calls, CardPath: s.Handler(s.card)}
}
