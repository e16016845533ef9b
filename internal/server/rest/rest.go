// Package rest is the public REST and streaming interface. It turns requests
// into calls of the owners' methods and committed events into frames; it stores
// nothing and decides nothing about a conversation.
//
// It promises: every error has the envelope of the OpenAPI document and a code of
// its list; an object of another workspace answers like one that does not exist; a
// stream shows committed events only, in order, each once, and ends with done or
// tells by ending without it that it can be resumed.
package rest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/parley-server/parley/internal/outage"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/turn"
)

// What a server is to be set to: how long a request's headers may be, in bytes, and
// how long they may take.
const (
	HeaderBytes = 16 << 10
	HeaderTime  = 5 * time.Second
)

// Config is what the handler needs. The stores and Turns are required.
type Config struct {
	server.Config

	Turns     *turn.Service
	Files     *filestore.Store
	Callbacks *callback.Store
	Ready     func(context.Context) error // nil: always ready
}

// api is the handler.
type api struct {
	cfg      Config
	door     *server.Door
	document document
	routes   http.Handler

	readiness *outage.Log
}

// New makes the handler. It fails where the OpenAPI document and the handlers
// differ. Streams end when the request's context does: make it end with the
// process. Keys.Run must be running for revoked keys to lose their streams.
func New(cfg Config) (http.Handler, error) {
	if cfg.Turns == nil || cfg.Files == nil || cfg.Callbacks == nil {
		return nil, errors.New("httpapi: Turns, Files and Callbacks are required")
	}
	if cfg.Ready == nil {
		cfg.Ready = func(context.Context) error { return nil }
	}
	d, err := server.New(cfg.Config)
	if err != nil {
		return nil, err
	}
	cfg.Config = d.Config
	s := &api{cfg: cfg, door: d, readiness: outage.New(cfg.Log, "get ready")}
	doc, ops, err := load(openapi, cfg, s.handlers())
	if err != nil {
		return nil, err
	}
	s.document, s.routes = doc, s.router(ops)
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *api) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.routes.ServeHTTP(w, r) }

// handlers binds the operations of the document.
func (s *api) handlers() map[string]handler {
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
