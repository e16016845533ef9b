package tools

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
	"github.com/parley-server/parley/internal/server/mcp/transport"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/apikey"
)

// Call is one call of a tool.
type Call struct {
	*transport.Visit
	Request *mcp.CallToolRequest
	Args    request.Fields
	Fields  []string // all names of the tool's arguments
}

// Result is the result of a tool.
type Result struct {
	Value  any               // fits the tool's output
	Texts  []string          // the same as text, the agent's in separate parts; none: Value is encoded
	Failed bool              // the request was not carried out
	Ask    *mcp.ElicitParams // a question to ask before the result
	State  string            // the client returns it with the answer to Ask
	ID     string            // the name of Ask
}

// Handler handles a call. Its errors become results as well.
type Handler func(context.Context, *Call) (Result, error)

// call runs a tool. Failures become results that a model can read, except for errors of the client.
func (s *Server) call(ctx context.Context, t *tool, req *mcp.CallToolRequest) (_ *mcp.CallToolResult, _ error) {
	v := transport.VisitOf(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(v.Context, func() { cancel(context.Cause(v.Context)) })()
	res, err := s.run(ctx, v, t, req)
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok { // an error of the client, not of the model that chose the arguments
		return nil, &sdk.Error{Code: int64(e.Code), Message: e.Message}
	}
	if err != nil {
		about := []any{"tool", t.spec.Name, "workspace", v.Caller.Workspace.ID, "key", v.Caller.Key}
		return faultResult(s.Fault(v.Context, err, about...)), nil
	}
	if res.Ask != nil {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{res.ID: res.Ask}, RequestState: res.State}, nil
	}
	value, err := json.Marshal(res.Value)
	if err != nil {
		return faultResult(s.Fault(v.Context, fmt.Errorf("encode a result: %w", err), "tool", t.spec.Name)), nil
	}
	if len(res.Texts) == 0 {
		res.Texts = []string{string(value)}
	}
	content := make([]mcp.Content, len(res.Texts))
	for i, text := range res.Texts {
		content[i] = &mcp.TextContent{Text: text}
	}
	return &mcp.CallToolResult{Content: content, StructuredContent: json.RawMessage(value), IsError: res.Failed}, nil
}

// run parses the arguments of a call and passes them to the tool.
func (s *Server) run(ctx context.Context, v *transport.Visit, t *tool, req *mcp.CallToolRequest) (res Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a tool panicked: %v\n%s", p, debug.Stack())
		}
	}()
	c := &Call{Visit: v, Request: req, Fields: t.fields}
	if c.Args, err = parseArguments(req.Params.Arguments, t.fields); err != nil {
		return res, err
	}
	res, err = t.handle(ctx, c)
	if errors.Is(err, apikey.ErrDead) {
		err = apikey.Invalid()
	}
	return res, err
}

// checkScope rejects calls of tools whose scope the key lacks.
func (s *Server) checkScope(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if r, ok := req.(*mcp.CallToolRequest); ok && r.Params != nil {
			v := transport.VisitOf(ctx)
			for _, t := range s.tools {
				if t.spec.Name == r.Params.Name && !v.Caller.Scopes.Allows(t.scope) {
					return faultResult(server.MissingScope(t.scope)), nil
				}
			}
		}
		return next(ctx, method, req)
	}
}
