package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/store/toolset"
)

// toolHost is the name under which the service reaches the tool server of the bench.
const toolHost = "tools.bench.internal"

// The scripts of turns with one call each.
const (
	builtinCall = `@call grep {"pattern":"here"}`
	serverCall  = `@call bench__find {}`
)

// toolScenario measures turns with one call of an MCP server on this machine, in turns with those
// that call a built-in tool. A whole turn counts, from the request to the end of the stream.
func toolScenario(n int, ratios ...ratio) scenario {
	return scenario{
		Workload: "tool", Case: "one call in a turn", Modes: []string{Service}, ratios: ratios,
		run: func(ctx context.Context, b *bench, mode string) (Figures, error) { return callingOnce(ctx, b, mode, n) },
	}
}

func callingOnce(ctx context.Context, b *bench, mode string, n int) (f Figures, err error) {
	pin, stop, err := serveTool()
	if err != nil {
		return nil, err
	}
	defer stop()
	w, err := b.open(ctx, mode, 1, pin)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.addTool(ctx); err != nil {
		return nil, err
	}
	took := make(map[string][]time.Duration)
	for i := range n + turnWarmUp {
		for _, call := range []string{builtinCall, serverCall} {
			r := shortTurn(w.client)
			r.command = call + "\n" + builtin.Script("").Bench(1, deltaSize, 0).String()
			began := time.Now()
			if err := r.run(ctx); err != nil {
				return nil, err
			}
			if i >= turnWarmUp {
				took[call] = append(took[call], time.Since(began))
			}
		}
	}
	if err := w.checkResults(ctx, 2*(n+turnWarmUp)); err != nil {
		return nil, err
	}
	own, with := percentile(took[builtinCall], 50), percentile(took[serverCall], 50)
	return Figures{P50: milliseconds(with), P99: milliseconds(percentile(took[serverCall], 99)), Overhead: milliseconds(with - own)}, nil
}

// serveTool serves an MCP server with one tool. It returns the rule of egress that leads to it.
func serveTool() (pin string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	tools := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	mcp.AddTool(tools, &mcp.Tool{Name: "find"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil, nil
	})
	server := &http.Server{ReadHeaderTimeout: patience, Handler: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools },
		&mcp.StreamableHTTPOptions{DisableLocalhostProtection: true})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l)
	}()
	return "http://" + toolHost + ":80=" + l.Addr().String(), func() {
		_ = server.Close()
		<-ended
		for session := range tools.Sessions() {
			_ = session.Close()
		}
	}, nil
}

// addTool adds the tool server to the workspace, with its tool labeled as reading.
func (w *world) addTool(ctx context.Context) error {
	store := toolset.NewStore(w.pool)
	offer := toolset.Offer{OwnName: "find", Definition: toolset.Definition{Description: "Find something.",
		Schema: json.RawMessage(`{"type":"object"}`)}}
	_, _, err := store.Add(ctx, w.workspace.ID, toolset.Entry{Name: "bench", URL: "http://" + toolHost + "/mcp"}, "2025-11-25",
		[]toolset.Offer{offer})
	if err != nil {
		return err
	}
	_, err = store.SetTool(ctx, w.workspace.ID, "bench", "find", new(toolset.ReadOnly), nil)
	return err
}

// checkResults checks that n calls succeeded.
func (w *world) checkResults(ctx context.Context, n int) error {
	var ok int
	err := w.pool.QueryRow(ctx, `SELECT count(*) FROM events WHERE kind = 'tool_result' AND (data->>'ok')::bool`).Scan(&ok)
	if err == nil && ok != n {
		err = fmt.Errorf("%d calls succeeded instead of %d", ok, n)
	}
	return err
}
