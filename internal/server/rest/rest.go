// Package rest is the public REST and streaming interface. It turns requests into calls of the
// owners' methods and committed events into frames; it stores nothing and decides nothing about a
// conversation.
//
// It promises: every error has the envelope of the OpenAPI document and a code of its list; an
// object of another workspace is reported like one that does not exist; a stream contains only
// committed events, in order, each once, and ends with done; a stream that ends without done can be
// resumed.
package rest

import (
	"context"
	"maps"
	"time"

	"github.com/parley-server/parley/internal/outage"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/rest/call"
	"github.com/parley-server/parley/internal/server/rest/document"
	"github.com/parley-server/parley/internal/server/rest/files"
	"github.com/parley-server/parley/internal/server/rest/sessions"
)

// Limits of a request's headers, for http.Server.
const (
	HeaderBytes = 16 << 10
	HeaderTime  = 5 * time.Second
)

// api has the handlers.
type api struct {
	*server.Server
	isReady   func(context.Context) error
	document  document.Encoded
	readiness *outage.Log
	probes    chan struct{} // holds a value for each running probe
}

// New returns the handlers. It fails if the OpenAPI document and the handlers differ. ready reports
// whether the process can do its work; nil: always.
func New(srv *server.Server, ready func(context.Context) error) (server.Routes, error) {
	if ready == nil {
		ready = func(context.Context) error { return nil }
	}
	s := &api{Server: srv, isReady: ready, readiness: outage.New(srv.Log, "check readiness"), probes: make(chan struct{}, probesMax)}
	d, err := parseOpenAPI()
	if err != nil {
		return nil, err
	}
	doc, ops, err := loadDocument(d, srv.Config, s.handlers())
	if err != nil {
		return nil, err
	}
	s.document = doc
	return s.routes(ops), nil
}

// handlers returns the handlers of the document's operations.
func (s *api) handlers() map[string]call.Handler {
	all := map[string]call.Handler{
		"sendMessage":  s.sendMessage,
		"resumeStream": s.resumeStream,

		"listCallbacks":     s.listCallbacks,
		"getCallback":       s.getCallback,
		"redeliverCallback": s.redeliverCallback,

		"getOpenAPI": s.getOpenAPI,
		"health":     s.getHealth,
		"ready":      s.getReady,
		"probe":      s.streamProbe,
	}
	maps.Copy(all, sessions.Handlers(s.Server))
	maps.Copy(all, files.Handlers(s.Server))
	return all
}
