package tools

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/server"
)

// Server has the tools, and the SDK's servers for the keys that may use some of them.
type Server struct {
	*server.Server
	tools []tool

	mu      sync.Mutex
	servers map[string]*mcp.Server // by the names of their tools
}

// New returns the tools of a table with their handlers. It fails if the two differ.
func New(srv *server.Server, table []byte, handlers map[string]Handler) (*Server, error) {
	list, err := loadTools(table, handlers)
	return &Server{Server: srv, tools: list, servers: make(map[string]*mcp.Server)}, err
}

// Names returns the names of all tools.
func (s *Server) Names() []string {
	names := make([]string, len(s.tools))
	for i, t := range s.tools {
		names[i] = t.spec.Name
	}
	return names
}

// For returns the SDK's server for a key, with the tools of the key's scopes. Keys with the
// same tools share one.
func (s *Server) For(caller server.Caller) *mcp.Server {
	var names []string
	for _, t := range s.tools {
		if caller.Scopes.Allows(t.scope) {
			names = append(names, t.spec.Name)
		}
	}
	key := strings.Join(names, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.servers[key] == nil {
		s.servers[key] = s.newServer(names)
	}
	return s.servers[key]
}

// instructions explains to a model how to use the tools of a key together.
func instructions(names []string) string {
	if !slices.Contains(names, "send_message") {
		return `Parley holds conversations with the agent of one workspace. This key reads them: list_sessions and get_messages show ` +
			`what was said, ` +
			`list_pending what waits for a person, wiki_search and wiki_read what the workspace knows. A refused call says why in fault.`
	}
	return `Parley holds conversations with the agent of one workspace, who has its own tools, wiki and skills. ` +
		`send_message asks it and waits for the answer, which can take minutes; keep session_id to continue. ` +
		`Give each message an idempotency_key of its own, a fresh random UUID: if a call is lost or times out, the same call again ` +
		`waits for the same answer, and without a key it would be sent twice. ` +
		`Where error is "input_required", ask the person you work for: approvals are answered with decide_approval (wait: true brings ` +
		`the answer), secrets only at secret_url. ` +
		`wiki_search is faster for a lookup in the wiki. A refused call says why, and what to do, in fault.`
}

// newServer returns a server with some of the tools.
func (s *Server) newServer(names []string) *mcp.Server {
	srv := mcp.NewServer(&mcp.Implementation{Name: "parley", Title: "Parley", Version: s.Version}, &mcp.ServerOptions{
		Instructions: instructions(names),
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		// A list of tools is for keys of one set of scopes, which caches do not know.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope, c.TTLMs = "private", 0 },
	})
	for i := range s.tools {
		t := &s.tools[i]
		if slices.Contains(names, t.spec.Name) {
			srv.AddTool(t.spec, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return s.call(ctx, t, req)
			})
		}
	}
	srv.AddReceivingMiddleware(s.checkScope)
	return srv
}
