// Package httpapi is the public REST and streaming interface. It turns requests
// into calls of the owners' methods and committed events into frames; it stores
// nothing and decides nothing about a conversation.
//
// It promises: every error has the envelope of the OpenAPI document and a code of
// its list; an object of another workspace answers like one that does not exist; a
// stream shows committed events only, in order, each once, and ends with done or
// tells by ending without it that it can be resumed.
package httpapi

import (
	"context"
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
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/internal/workspace"
)

// What a server is to be set to: how long a request's headers may be, in bytes, and
// how long they may take.
const (
	HeaderBytes = 16 << 10
	HeaderTime  = 5 * time.Second
)

// Config is what the handler needs. The stores and Turns are required.
type Config struct {
	Sessions   *session.Store
	Files      *filestore.Store
	Callbacks  *callback.Store
	Turns      *turn.Service
	Workspaces *workspace.Store
	Keys       *apikey.Store

	Limits  *limit.Store                // nil: nobody is limited
	Ready   func(context.Context) error // nil: always ready
	Log     *slog.Logger                // nil discards
	Version string                      // as the OpenAPI document shows it; default "dev"
	BaseURL string                      // public address, for links; "" follows the Host and the scheme of the connection

	Keepalive    time.Duration // silence before a stream's comment; default 15 s
	WriteTimeout time.Duration // how long a reader, or the sender of a file, may stand still; default 30 s
	Timeout      time.Duration // how long a request may wait for the database; default 3 s
	Outage       time.Duration // how long a stream outlives the database; default 15 s
}

// server is the handler.
type server struct {
	cfg      Config
	door     *door.Door
	document document
	routes   http.Handler
}

// New makes the handler. It fails where the OpenAPI document and the handlers
// differ. Streams end when the request's context does: make it end with the
// process. Keys.Run must be running for revoked keys to lose their streams.
func New(cfg Config) (http.Handler, error) {
	if cfg.Sessions == nil || cfg.Turns == nil || cfg.Workspaces == nil || cfg.Keys == nil || cfg.Files == nil || cfg.Callbacks == nil {
		return nil, errors.New("httpapi: Sessions, Files, Callbacks, Turns, Workspaces and Keys are required")
	}
	if cfg.Ready == nil {
		cfg.Ready = func(context.Context) error { return nil }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Version == "" {
		cfg.Version = "dev"
	}
	defaults := []struct {
		d *time.Duration
		v time.Duration
	}{{&cfg.Keepalive, 15 * time.Second}, {&cfg.WriteTimeout, 30 * time.Second}, {&cfg.Timeout, 3 * time.Second}, {&cfg.Outage, 15 * time.Second}}
	for _, f := range defaults {
		if *f.d <= 0 {
			*f.d = f.v
		}
	}
	s := &server{cfg: cfg, door: door.New(door.Config{
		Sessions: cfg.Sessions, Workspaces: cfg.Workspaces, Keys: cfg.Keys, Limits: cfg.Limits, Log: cfg.Log, BaseURL: cfg.BaseURL,
		WriteTimeout: cfg.WriteTimeout, Timeout: cfg.Timeout, Outage: cfg.Outage,
	})}
	doc, ops, err := load(openapi, cfg, s.handlers())
	if err != nil {
		return nil, err
	}
	s.document, s.routes = doc, s.router(ops)
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.routes.ServeHTTP(w, r) }

// handlers binds the operations of the document.
func (s *server) handlers() map[string]handler {
	return map[string]handler{
		"sendMessage":  s.sendMessage,
		"listSessions": s.listSessions,
		"listMessages": s.listMessages,
		"resumeStream": s.resumeStream,
		"cancelTurn":   s.cancelTurn,

		"listApprovals":  s.listApprovals,
		"getApproval":    s.getApproval,
		"decideApproval": s.decideApproval,
		"answerSecret":   s.answerSecret,

		"listCallbacks":     s.listCallbacks,
		"getCallback":       s.getCallback,
		"redeliverCallback": s.redeliverCallback,
		"createFile":        s.createFile,
		"listFiles":         s.listFiles,
		"downloadFiles":     s.downloadFiles,
		"getFile":           s.getFile,
		"uploadFile":        s.uploadFile,
		"fetchFile":         s.fetchFile,

		"getOpenAPI": s.getOpenAPI,
		"health":     s.health,
		"ready":      s.ready,
	}
}
