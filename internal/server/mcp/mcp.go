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
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/turn"
)

// Path is where the handler is to be mounted.
const Path = "/mcp"

// Config is what the handler needs. The stores and Turns are required.
type Config struct {
	server.Config

	Turns  *turn.Service
	Files  *filestore.Store
	Skills *skill.Store
	Wiki   *wiki.Store
}

// api is the handler.
type api struct {
	cfg   Config
	door  *server.Door
	tools []tool

	mu      sync.Mutex
	servers map[string]*mcp.Server // by the names of their tools
}

// New makes the handler. It fails where the table of tools and the handlers differ. Calls
// end when the request's context does: make it end with the process.
func New(cfg Config) (http.Handler, error) {
	if cfg.Turns == nil || cfg.Files == nil || cfg.Skills == nil || cfg.Wiki == nil {
		return nil, errors.New("mcpserver: Turns, Files, Skills and Wiki are required")
	}
	d, err := server.New(cfg.Config)
	if err != nil {
		return nil, err
	}
	cfg.Config = d.Config
	s := &api{cfg: cfg, door: d, servers: make(map[string]*mcp.Server)}
	if s.tools, err = load(table, s.handlers()); err != nil {
		return nil, err
	}
	return s.door.Handler(s.serve), nil
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
