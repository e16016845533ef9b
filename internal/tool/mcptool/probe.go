package mcptool

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/schema"
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
	// Grants returns the tokens of a caller; nil: there are none.
	Grants func(workspace uuid.UUID, caller string) Grants

	caller string
}

// As returns a Probe that uses the grants of a caller, for servers where each caller has one.
func (p Probe) As(caller string) Probe {
	p.caller = caller
	return p
}

func (p Probe) grants(workspace uuid.UUID) Grants {
	if p.Grants == nil {
		return nil
	}
	return p.Grants(workspace, p.caller)
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
	return List(ctx, env, p.grants(workspace), server)
}

// Call calls an accepted tool. An input that does not fit its schema is not sent.
func (p Probe) Call(ctx context.Context, workspace uuid.UUID, server toolset.Server, t toolset.Tool, input []byte) (tool.Result, error) {
	if p.Open == nil {
		return tool.Result{}, errNoProbe
	}
	if s, err := schema.Compile(t.Definition.Schema); err == nil { // else the server alone checks
		if wrong := s.Misfit(input); wrong != "" {
			return tool.Reject(wrong), nil
		}
	}
	env := p.Open(workspace)
	defer env.Close()
	own := serverTool{&peer{server: server, env: env, grants: p.grants(workspace)}, t}
	res, err := own.Call(ctx, tool.Call{ID: "test", Workspace: workspace, Input: input})
	if _, unconnected := errors.AsType[tool.Connect](err); unconnected {
		err = notConnected(server)
	}
	return res, err
}
