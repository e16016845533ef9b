// Package dialect is what the doors for chat clients have in common. Such a door speaks a
// protocol that was made elsewhere; what it says of a turn is a projection: a function of the
// rows of the log, and of nothing else. This package starts turns, finds the one that a chat
// is in, answers its questions and reads its rows; it knows none of the protocols.
//
// It promises: a client may leave at any time and its turn goes on; what it missed can be
// read again, from the first row of the turn; a stream that ends before its turn does is cut
// off, so that nobody takes it for whole.
package dialect

import (
	"errors"
	"log/slog"
	"time"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/limit"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/skill"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/internal/workspace"
)

// Config is what these doors need. The stores and Turns are required.
type Config struct {
	Sessions   *session.Store
	Turns      *turn.Service
	Workspaces *workspace.Store
	Keys       *apikey.Store
	Skills     *skill.Store

	Limits  *limit.Store // nil: nobody is limited
	Log     *slog.Logger // nil discards
	BaseURL string       // public address, for links; "" follows the Host and the scheme of the connection

	Keepalive    time.Duration // silence before a stream's comment; default 15 s
	WriteTimeout time.Duration // how long a reader may stand still; default 30 s
	Timeout      time.Duration // how long a request may wait for the database; default 3 s
	Outage       time.Duration // how long a stream outlives the database; default 15 s
}

// Desk is where a chat client is served.
type Desk struct {
	Config
	Door *door.Door
}

// New makes a desk. Streams end when the request's context does: make it end with the
// process. Keys.Run must be running for revoked keys to lose their streams.
func New(cfg Config) (*Desk, error) {
	if cfg.Sessions == nil || cfg.Turns == nil || cfg.Workspaces == nil || cfg.Keys == nil || cfg.Skills == nil {
		return nil, errors.New("dialect: Sessions, Turns, Workspaces, Keys and Skills are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Keepalive <= 0 {
		cfg.Keepalive = 15 * time.Second
	}
	return &Desk{Config: cfg, Door: door.New(door.Config{
		Sessions: cfg.Sessions, Workspaces: cfg.Workspaces, Keys: cfg.Keys, Limits: cfg.Limits, Log: cfg.Log, BaseURL: cfg.BaseURL,
		WriteTimeout: cfg.WriteTimeout, Timeout: cfg.Timeout, Outage: cfg.Outage,
	})}, nil
}
