// Package a2a speaks the Agent2Agent protocol: JSON-RPC 2.0 at one address, in its versions
// 0.3 and 1.0, and the agent card beside it. A context is a session, a task is a turn, and
// the id of a message is its idempotency key.
//
// It promises: what may not come in is refused in the one envelope of all ways in, and from
// there on everything, errors too, is JSON-RPC with the caller's id; a task of another
// workspace answers like one that does not exist; a stream is a function of the committed
// events, so whoever comes back with the id of a frame misses none and gets none twice; a
// secret never travels through here; hanging up never stops a turn.
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
	noCard bool // without a key there is no card
}

// New returns the handlers. publicCard says whether there is an agent card without a key.
func New(srv *server.Server, publicCard bool) server.Routes {
	s := &api{Server: srv, noCard: !publicCard}
	calls := s.Handler(s.serve)
	// Some clients join the address and the path /.
	return server.Routes{Path: calls, Path + "/": calls, CardPath: s.Handler(s.card)}
}
