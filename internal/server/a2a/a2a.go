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
	"errors"
	"net/http"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/turn"
)

// Where the handlers are to be mounted.
const (
	Path     = "/a2a"
	CardPath = "/.well-known/agent-card.json"
)

// Config is what the handlers need. The stores and Turns are required.
type Config struct {
	server.Config

	Turns     *turn.Service
	Files     *filestore.Store
	Skills    *skill.Store
	Callbacks *callback.Store
	NoCard    bool // without a key there is no card
}

// api is behind both handlers.
type api struct {
	cfg  Config
	door *server.Door
}

// New makes the handlers, by their paths. Streams end when the request's context does: make
// it end with the process.
func New(cfg Config) (map[string]http.Handler, error) {
	if cfg.Turns == nil || cfg.Files == nil || cfg.Skills == nil || cfg.Callbacks == nil {
		return nil, errors.New("a2a: Turns, Files, Skills and Callbacks are required")
	}
	d, err := server.New(cfg.Config)
	if err != nil {
		return nil, err
	}
	cfg.Config = d.Config
	s := &api{cfg: cfg, door: d}
	calls := s.door.Handler(s.serve)
	// Some clients join the address and the path /.
	return map[string]http.Handler{Path: calls, Path + "/": calls, CardPath: s.door.Handler(s.card)}, nil
}
