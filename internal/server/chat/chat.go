// Package chat is what the doors for chat clients have in common. Such a door speaks a
// protocol that was made elsewhere; what it says of a turn is a projection: a function of the
// rows of the log, and of nothing else. This package starts turns, finds the one that a chat
// is in, answers its questions and reads its rows; it knows none of the protocols.
//
// It promises: a client may leave at any time and its turn goes on; what it missed can be
// read again, from the first row of the turn; a stream that ends before its turn does is cut
// off, so that nobody takes it for whole.
package chat

import (
	"errors"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/turn"
)

// Config is what these doors need. The stores and Turns are required.
type Config struct {
	server.Config

	Turns  *turn.Service
	Skills *skill.Store
}

// Desk is where a chat client is served.
type Desk struct {
	Config
	Door *server.Door
}

// New makes a desk. Streams end when the request's context does: make it end with the
// process. Keys.Run must be running for revoked keys to lose their streams.
func New(cfg Config) (*Desk, error) {
	if cfg.Turns == nil || cfg.Skills == nil {
		return nil, errors.New("dialect: Turns and Skills are required")
	}
	d, err := server.New(cfg.Config)
	if err != nil {
		return nil, err
	}
	cfg.Config = d.Config
	return &Desk{Config: cfg, Door: d}, nil
}
