// Package mcpserver speaks the Model Context Protocol at one address: streamable HTTP
// without sessions, every revision that the official SDK knows. Its tools are the same calls
// of the owners' methods that the HTTP interface makes, on the same rows.
//
// It promises: a request that may not come in is refused in the one envelope of all ways in,
// before the protocol starts; behind it, what a caller can mend is the result of a tool, with
// the fault in it, and never an error of the protocol; a key sees the tools of its scopes and
// its own workspace; no secret travels through here; giving up a call never stops a turn.
package mcpserver

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/filestore"
	"github.com/parley-server/parley/internal/limit"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/skill"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/internal/wiki"
	"github.com/parley-server/parley/internal/wire"
	"github.com/parley-server/parley/internal/workspace"
)

// Path is where the handler is to be mounted.
const Path = "/mcp"

// Config is what the handler needs. The stores and Turns are required.
type Config struct {
	Sessions   *session.Store
	Turns      *turn.Service
	Workspaces *workspace.Store
	Keys       *apikey.Store
	Files      *filestore.Store
	Skills     *skill.Store
	Wiki       *wiki.Store

	Limits  *limit.Store // nil: nobody is limited
	Log     *slog.Logger // nil discards
	Version string       // as clients are told it; default "dev"
	BaseURL string       // public address, for links and for the origins of browsers; "" follows the Host

	Keepalive    time.Duration // silence before a comment; default 15 s
	WriteTimeout time.Duration // how long a reader may stand still; default 30 s
	Timeout      time.Duration // how long a call may wait for the database; default 3 s
	Outage       time.Duration // how long a call that waits for a turn outlives the database; default 15 s
}

// server is the handler.
type server struct {
	cfg      Config
	door     *door.Door
	tools    []tool
	protocol http.Handler

	mu      sync.Mutex
	servers map[string]*mcp.Server // by the names of their tools
}

// New makes the handler. It fails where the table of tools and the handlers differ. Calls
// end when the request's context does: make it end with the process.
func New(cfg Config) (http.Handler, error) {
	if cfg.Sessions == nil || cfg.Turns == nil || cfg.Workspaces == nil || cfg.Keys == nil || cfg.Files == nil || cfg.Skills == nil || cfg.Wiki == nil {
		return nil, errors.New("mcpserver: Sessions, Turns, Workspaces, Keys, Files, Skills and Wiki are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Version == "" {
		cfg.Version = "dev"
	}
	if cfg.Keepalive <= 0 {
		cfg.Keepalive = 15 * time.Second
	}
	s := &server{cfg: cfg, servers: make(map[string]*mcp.Server), door: door.New(door.Config{
		Sessions: cfg.Sessions, Workspaces: cfg.Workspaces, Keys: cfg.Keys, Limits: cfg.Limits, Log: cfg.Log, BaseURL: cfg.BaseURL,
		WriteTimeout: cfg.WriteTimeout, Timeout: cfg.Timeout, Outage: cfg.Outage,
	})}
	var err error
	if s.tools, err = load(table, s.handlers()); err != nil {
		return nil, err
	}
	s.protocol = mcp.NewStreamableHTTPHandler(s.server, &mcp.StreamableHTTPOptions{
		Stateless:                  true,
		MaxRequestBodyBytes:        wire.MaxBody,
		DisableLocalhostProtection: true, // local knows of proxies, too
	})
	return s.door.Handler(s.serve), nil
}

// handlers binds the tools of the table.
func (s *server) handlers() map[string]handler {
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
