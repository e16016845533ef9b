package httptool

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/remote"
)

// ClosingEnv is an Env for requests of an administrator.
type ClosingEnv interface {
	Env
	Close()
}

// Probe calls tools for administrators.
type Probe struct {
	Sender
	// Open opens an environment without a turn, which keeps no files.
	Open func(workspace uuid.UUID) ClosingEnv
}

// Call calls a tool. A response with the status 202 is its result: no turn waits for a later one.
func (p Probe) Call(ctx context.Context, workspace uuid.UUID, server toolset.Server, def toolset.Tool, input []byte) (tool.Result, error) {
	if p.Open == nil {
		return tool.Result{}, tool.Refusal("This process cannot reach tool servers. Ask a running server.")
	}
	env := p.Open(workspace)
	defer env.Close()
	t, err := newTool(env, &remote.Uses{}, p.Sender, server, def)
	if err != nil {
		return tool.Result{}, err
	}
	if wrong := t.Check(input); wrong != "" {
		return tool.Reject(wrong), nil
	}
	res, err := t.Call(ctx, tool.Call{ID: "test_" + strings.ToLower(rand.Text()), Workspace: workspace, Input: input})
	if _, later := errors.AsType[tool.Later](err); later {
		return tool.Result{OK: true, Output: "Accepted (HTTP 202). In a turn, the agent waits for the result."}, nil
	}
	return res, err
}
