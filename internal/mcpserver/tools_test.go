package mcpserver_test

import (
	"context"
	"encoding/json"

	"github.com/parley-server/parley/internal/tool"
)

// gate is a tool that waits until it is opened: with it a test holds a turn. It is called
// read, so that nobody is asked.
type gate struct{ entered, leave chan struct{} }

func (g *gate) Spec() tool.Spec {
	return tool.Spec{Name: "read", Description: "Waits.", Schema: json.RawMessage(`{"type":"object"}`), Idempotent: true}
}

func (g *gate) Call(ctx context.Context, _ tool.Call) (tool.Result, error) {
	g.entered <- struct{}{}
	select {
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	case <-g.leave:
	}
	return tool.Result{OK: true, Output: "open"}, nil
}

// touch is a tool that asks before it runs.
type touch struct{}

func (touch) Spec() tool.Spec {
	return tool.Spec{Name: "touch", Description: "Touches.", Schema: json.RawMessage(`{"type":"object"}`), Idempotent: true}
}

func (touch) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{OK: true, Output: "touched"}, nil
}
