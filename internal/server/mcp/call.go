package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/jsonrpc"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/apikey"
)

// call is one call of a tool.
type call struct {
	*visit
	tool *tool
	req  *mcp.CallToolRequest
	args request.Fields
}

// result is the result of a tool.
type result struct {
	value  any               // fits the tool's output
	texts  []string          // the same as text, the agent's in separate parts; none: value is encoded
	failed bool              // the request was not carried out
	ask    *mcp.ElicitParams // a question to ask before the result
	state  string            // the client returns it with the answer to ask
	id     string            // the name of ask
}

// handler handles a call. Its errors become results as well.
type handler func(context.Context, *call) (result, error)

// call runs a tool. Failures become results that a model can read, except for errors of the client.
func (s *api) call(ctx context.Context, t *tool, req *mcp.CallToolRequest) (_ *mcp.CallToolResult, _ error) {
	v := ctx.Value(visitKey{}).(*visit)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(v.ctx, func() { cancel(context.Cause(v.ctx)) })()
	res, err := s.run(ctx, v, t, req)
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok { // an error of the client, not of the model that chose the arguments
		return nil, &sdk.Error{Code: int64(e.Code), Message: e.Message}
	}
	if err != nil {
		about := []any{"tool", t.spec.Name, "workspace", v.caller.Workspace.ID, "key", v.caller.Key}
		return faultResult(s.Fault(v.ctx, err, about...)), nil
	}
	if res.ask != nil {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{res.id: res.ask}, RequestState: res.state}, nil
	}
	value, err := json.Marshal(res.value)
	if err != nil {
		return faultResult(s.Fault(v.ctx, fmt.Errorf("encode a result: %w", err), "tool", t.spec.Name)), nil
	}
	if len(res.texts) == 0 {
		res.texts = []string{string(value)}
	}
	content := make([]mcp.Content, len(res.texts))
	for i, text := range res.texts {
		content[i] = &mcp.TextContent{Text: text}
	}
	return &mcp.CallToolResult{Content: content, StructuredContent: json.RawMessage(value), IsError: res.failed}, nil
}

// run parses the arguments of a call and passes them to the tool.
func (s *api) run(ctx context.Context, v *visit, t *tool, req *mcp.CallToolRequest) (res result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a tool panicked: %v\n%s", p, debug.Stack())
		}
	}()
	c := &call{visit: v, req: req, tool: t}
	if c.args, err = parseArguments(req.Params.Arguments, t.fields); err != nil {
		return res, err
	}
	res, err = t.handle(ctx, c)
	if errors.Is(err, apikey.ErrDead) {
		err = apikey.Invalid()
	}
	return res, err
}

// checkScope rejects calls of tools whose scope the key lacks.
func (s *api) checkScope(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if r, ok := req.(*mcp.CallToolRequest); ok && r.Params != nil {
			v := ctx.Value(visitKey{}).(*visit)
			for _, t := range s.tools {
				if t.spec.Name == r.Params.Name && !v.caller.Scopes.Allows(t.scope) {
					return faultResult(server.MissingScope(t.scope)), nil
				}
			}
		}
		return next(ctx, method, req)
	}
}
