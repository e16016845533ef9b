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
	"log/slog"
	"net/http"
	"time"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/callback"
	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/filestore"
	"github.com/parley-server/parley/internal/limit"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/skill"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/internal/workspace"
)

// Where the handlers are to be mounted.
const (
	Path     = "/a2a"
	CardPath = "/.well-known/agent-card.json"
)

// Config is what the handlers need. The stores and Turns are required.
type Config struct {
	Sessions   *session.Store
	Turns      *turn.Service
	Workspaces *workspace.Store
	Keys       *apikey.Store
	Files      *filestore.Store
	Skills     *skill.Store
	Callbacks  *callback.Store

	Limits  *limit.Store // nil: nobody is limited
	Log     *slog.Logger // nil discards
	Version string       // as cards tell it; default "dev"
	BaseURL string       // public address, for links; "" follows the Host and the scheme of the connection
	NoCard  bool         // without a key there is no card

	Keepalive    time.Duration // silence before a stream's comment; default 15 s
	WriteTimeout time.Duration // how long a reader may stand still; default 30 s
	Timeout      time.Duration // how long a request may wait for the database; default 3 s
	Outage       time.Duration // how long a stream outlives the database; default 15 s
}

// server is behind both handlers.
type server struct {
	cfg  Config
	door *door.Door
}

// New makes the handlers, by their paths. Streams end when the request's context does: make
// it end with the process.
func New(cfg Config) (map[string]http.Handler, error) {
	if cfg.Sessions == nil || cfg.Turns == nil || cfg.Workspaces == nil || cfg.Keys == nil || cfg.Files == nil || cfg.Skills == nil || cfg.Callbacks == nil {
		return nil, errors.New("a2a: Sessions, Turns, Workspaces, Keys, Files, Skills and Callbacks are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Version == "" {
		cfg.Version = "dev"
	}
	s := &server{cfg: cfg, door: door.New(door.Config{
		Sessions: cfg.Sessions, Workspaces: cfg.Workspaces, Keys: cfg.Keys, Limits: cfg.Limits, Log: cfg.Log, BaseURL: cfg.BaseURL,
		WriteTimeout: cfg.WriteTimeout, Timeout: cfg.Timeout, Outage: cfg.Outage,
	})}
	return map[string]http.Handler{Path: s.door.Handler(s.serve), CardPath: s.door.Handler(s.card)}, nil
}
