// Package mcptool calls the tools of MCP servers. Other packages decide where requests may go, insert
// the credentials and remove them from answers.
//
// It promises: a server that is down, slow or hostile makes a call fail with a reason for the model,
// and never the turn. A call has limits of time, bytes and requests. A call is repeated only if it
// cannot have had an effect, or if its tool may be repeated. The server gets no answer to questions.
package mcptool

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/remote"
	"github.com/parley-server/parley/internal/tool/result"
)

// Env is what the tools of a run act with.
type Env interface {
	// Route opens the way to one host, name:port, for requests that may carry the named credentials.
	// stands are their placeholders.
	Route(ctx context.Context, host string, credentials []string) (send remote.Send, stands map[string]string, err error)
	// RouteToken is Route for requests that can also carry a token, with a placeholder under its name.
	RouteToken(ctx context.Context, host string, credentials []string, token vault.Opened) (send remote.Send,
		stands map[string]string, err error)
	result.Env
	// AtClose registers a function that runs before the environment closes.
	AtClose(f func())
}

// Registry stores the state of servers.
type Registry interface {
	remote.Registry
	// Refresh compares what a server offers now with the accepted definitions. It returns the names of
	// the usable tools; ok is false if it could not compare them.
	Refresh(ctx context.Context, server toolset.Server, protocol string, offers []toolset.Offer) (usable []string, ok bool)
}

// Grants has the tokens of one caller for servers with OAuth.
type Grants interface {
	// Token returns a token for requests to a server, refreshed if necessary. rejected is the
	// version of a token that the server does not accept; 0: none. The error is ErrNotConnected if
	// the caller has no grant, or a tool.Refusal.
	Token(ctx context.Context, server toolset.Server, rejected int64) (Token, error)
}

// Token is the access token of a grant.
type Token struct {
	vault.Value
	Grant   uuid.UUID
	Version int64 // of the grant
}

// ErrNotConnected means that a server has not granted access.
var ErrNotConnected = errors.New("mcptool: the server is not connected")

// Tools returns the tools of servers. The tools of one server share a session with it.
func Tools(env Env, registry Registry, grants Grants, servers []toolset.Server) (tools []tool.Tool) {
	for _, s := range servers {
		if s.Kind != toolset.MCP {
			continue
		}
		p := &peer{server: s, env: env, registry: registry, uses: remote.Uses{Registry: registry, Server: s}, grants: grants}
		for _, t := range s.Tools {
			tools = append(tools, serverTool{p, t})
		}
	}
	return tools
}

// serverTool is one tool of a server.
type serverTool struct {
	peer *peer
	def  toolset.Tool
}

// Spec implements tool.Tool. The definition is the accepted one.
func (t serverTool) Spec() tool.Spec {
	return tool.Spec{Name: t.def.Name, Description: t.def.Definition.Description, Schema: t.def.Definition.Schema,
		Idempotent: t.def.IsRepeatable(), UniqueID: true}
}
