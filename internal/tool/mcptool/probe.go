package mcptool

import (
	"context"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/tool"
)

// ClosingEnv is an Env for requests of an administrator.
type ClosingEnv interface {
	Env
	Close()
}

// Probe connects to servers for administrators.
type Probe struct {
	// Open opens an environment without a turn, which keeps no files.
	Open func(workspace uuid.UUID) ClosingEnv
}

// errNoProbe is the error of a process that has no way to tool servers.
const errNoProbe = tool.Refusal("This process cannot reach tool servers. Ask a running server.")

// List lists the tools that a server offers. A failure is a tool.Refusal with the reason.
func (p Probe) List(ctx context.Context, workspace uuid.UUID, server toolset.Server) ([]toolset.Offer, string, error) {
	if p.Open == nil {
		return nil, "", errNoProbe
	}
	env := p.Open(workspace)
	defer env.Close()
	return List(ctx, env, server)
}

// Call calls an accepted tool.
func (p Probe) Call(ctx context.Context, workspace uuid.UUID, server toolset.Server, t toolset.Tool, input []byte) (tool.Result, error) {
	if p.Open == nil {
		return tool.Result{}, errNoProbe
	}
	env := p.Open(workspace)
	defer env.Close()
	return serverTool{&peer{server: server, env: env}, t}.Call(ctx, tool.Call{ID: "test", Workspace: workspace, Input: input})
}
