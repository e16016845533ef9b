// Package mcp speaks the Model Context Protocol at one address: streamable HTTP
// without sessions, every revision that the official SDK knows. Its tools are the same calls
// of the owners' methods that the HTTP interface makes, on the same rows.
//
// It promises: a request that may not come in is refused in the one envelope of all ways in,
// before the protocol starts; behind it, what a model can mend is the result of a tool, with
// the fault in it, and an error of the protocol is only what its client has done wrong; a key
// sees the tools of its scopes and its own workspace; no secret travels through here; giving
// up a call never stops a turn.
//
// Messages are taken apart here, and the SDK is handed one request at a time: it would change
// ids, drop messages of a batch and speak of itself in its errors.
package mcp

import (
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/server"
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
	if s.tools, err = load(table, s.handlers()); err != nil {
		return nil, err
	}
	return server.Routes{Path: s.Handler(s.serve)}, nil
}

// handlers binds the tools of the table.
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
