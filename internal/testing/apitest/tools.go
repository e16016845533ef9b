package apitest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/tool"
)

// anything is the schema of a tool that accepts any object.
var anything = json.RawMessage(`{"type":"object"}`)

// Gate is a tool that waits until it is opened, with which a test can hold a turn.
type Gate struct {
	name    string
	Entered chan struct{} // a call is waiting
	Leave   chan struct{} // lets one call continue
}

// Await returns when a call waits at the gate.
func (g *Gate) Await(t testing.TB) {
	t.Helper()
	wait.Receive(t, "a call at the gate", g.Entered)
}

// Spec implements tool.Tool.
func (g *Gate) Spec() tool.Spec {
	return tool.Spec{Name: g.name, Description: "Waits.", Schema: anything, Idempotent: true}
}

// Call implements tool.Tool.
func (g *Gate) Call(ctx context.Context, _ tool.Call) (tool.Result, error) {
	g.Entered <- struct{}{}
	select {
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	case <-g.Leave:
	}
	return tool.Result{OK: true, Output: "open"}, nil
}

// Touch is a tool without a rule.
type Touch struct{}

// Spec implements tool.Tool.
func (Touch) Spec() tool.Spec {
	return tool.Spec{Name: "touch", Description: "Touches.", Schema: anything, Idempotent: true}
}

// Call implements tool.Tool.
func (Touch) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{OK: true, Output: "touched"}, nil
}
