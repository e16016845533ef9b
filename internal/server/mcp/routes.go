// Package mcp serves the Model Context Protocol at one address: streamable HTTP without sessions,
// every revision that the official SDK supports. Its tools call the same methods as the REST
// interface, on the same rows.
//
// It promises: an unauthorized request is rejected with the error envelope of all protocols before
// MCP starts; after that, an error that a model can correct is the result of a tool, with the fault
// in it, and a protocol error is an error of the client; a key sees the tools of its scopes and its
// own workspace; no secret passes through here; an abandoned call never stops a turn.
//
// Package transport connects the SDK to HTTP, tools is the table of tools and their calls, and
// turns has the tools that wait for the agent; the tools that only read, and those of the wiki, are
// here.
package mcp

import (
	_ "embed"
	"errors"
	"maps"
	"net/http"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/mcp/tools"
	"github.com/parley-server/parley/internal/server/mcp/transport"
	"github.com/parley-server/parley/internal/server/mcp/turns"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/wiki"
)

// Path is the path of the handler.
const Path = "/mcp"

// table lists the tools and the scope that each needs.
//
//go:embed tools.yaml
var table []byte

// api has the tools that only read, and those of the wiki.
type api struct {
	*server.Server
	wiki *wiki.Store
}

// New returns the handler. It fails if the table of tools and the handlers differ.
func New(srv *server.Server, pages *wiki.Store) (server.Routes, error) {
	if pages == nil {
		return nil, errors.New("mcp: the wiki is required")
	}
	handlers := (&api{srv, pages}).handlers()
	maps.Copy(handlers, turns.Tools{Server: srv}.Handlers())
	list, err := tools.New(srv, table, handlers)
	if err != nil {
		return nil, err
	}
	// A GET would open a stream of a session and a DELETE would end one, but this server has no
	// sessions.
	post := server.Operation{Scope: apikey.MCPRead, Class: ratelimit.Calls, CheckOrigin: true, Serve: transport.New(srv, list.Names(),
		list.For).Serve}
	return server.Routes{Path: srv.HandleMethods(map[string]server.Operation{http.MethodPost: post})}, nil
}

func (s *api) handlers() map[string]tools.Handler {
	return map[string]tools.Handler{
		"list_skills":   s.listSkills,
		"list_sessions": s.listSessions,
		"get_session":   s.getSession,
		"get_messages":  s.getMessages,
		"wiki_read":     s.wikiRead,
		"wiki_search":   s.wikiSearch,
		"save_wiki":     s.saveWiki,
	}
}
