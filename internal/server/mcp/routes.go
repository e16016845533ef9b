// Package mcp serves the Model Context Protocol at one address: streamable HTTP without sessions,
// every revision that the official SDK supports. Its tools call the same methods as the REST
// interface, on the same rows.
//
// It promises: an unauthorized request is rejected with the error envelope of all protocols before
// MCP starts; after that, an error that a model can correct is the result of a tool, with the fault
// in it, and a protocol error is an error of the client; a key sees the tools of its scopes and its
// own workspace; no secret passes through here; an abandoned call never stops a turn.
//
// This package parses the messages and gives the SDK one request at a time, because the SDK's HTTP
// handler would change ids and drop batches; docs/internals/design.md has the reasons.
//
// routes.go and serve.go receive requests; parse_*.go, revision.go and batch.go parse them;
// transport.go and reply.go connect the SDK; tools.go and call.go run a tool; encode*.go write
// results.
package mcp

import (
	"errors"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/wiki"
)

// Path is the path of the handler.
const Path = "/mcp"

// api has the handler.
type api struct {
	*server.Server
	wiki  *wiki.Store
	tools []tool

	mu      sync.Mutex
	servers map[string]*mcp.Server // by the names of their tools
}

// New returns the handler. It fails if the table of tools and the handlers differ.
func New(srv *server.Server, pages *wiki.Store) (server.Routes, error) {
	if pages == nil {
		return nil, errors.New("mcp: the wiki is required")
	}
	s := &api{Server: srv, wiki: pages, servers: make(map[string]*mcp.Server)}
	var err error
	if s.tools, err = loadTools(table, s.handlers()); err != nil {
		return nil, err
	}
	// A GET would open a stream of a session and a DELETE would end one, but this server has no
	// sessions.
	post := server.Operation{Scope: apikey.MCPRead, Class: ratelimit.Calls, CheckOrigin: true, Serve: s.serve}
	return server.Routes{Path: s.HandleMethods(map[string]server.Operation{http.MethodPost: post})}, nil
}

// handlers returns the handlers of the tools in the table.
func (s *api) handlers() map[string]handler {
	return map[string]handler{
		"send_message":    s.sendMessage,
		"list_skills":     s.listSkills,
		"list_sessions":   s.listSessions,
		"get_session":     s.getSession,
		"get_messages":    s.getMessages,
		"list_pending":    s.listPending,
		"decide_approval": s.decideApproval,
		"cancel_session":  s.cancelSession,
		"wiki_read":       s.wikiRead,
		"wiki_search":     s.wikiSearch,
		"save_wiki":       s.saveWiki,
	}
}
