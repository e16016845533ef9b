package turn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/internal/turn"
)

// named is a tool that succeeds.
type named string

func (n named) Spec() tool.Spec {
	return tool.Spec{Name: string(n), Description: "x", Schema: json.RawMessage(`{"type":"object"}`)}
}

func (n named) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{OK: true, Output: string(n) + " ran"}, nil
}

// TestOwnToolsFollowTheRules offers a workspace's own tools with the built-in ones: a denied tool is
// not offered, one that reads runs, and one that changes something asks.
func TestOwnToolsFollowTheRules(t *testing.T) {
	t.Parallel()
	calls := [][]modeltest.Call{{{ID: "c1", Tool: "crm__find", Input: `{}`}}, {{ID: "c2", Tool: "crm__off", Input: `{}`}},
		{{ID: "c3", Tool: "crm__rename", Input: `{}`}}}
	script := &modeltest.Script{Answer: func(r modeltest.Request) modeltest.Reply { return modeltest.Reply{Calls: calls[min(r.N, 2)]} }}
	w := newWorld(t, script)
	w.tools = []tool.Tool{named("bash"), named("read")}
	if _, err := w.pool.Exec(t.Context(),
		`WITH s AS (INSERT INTO tool_servers (workspace_id, name, kind, url, timeout_seconds) VALUES ($1, 'crm', 'mcp', 'https://crm.example/', 60) RETURNING id),
		r AS (INSERT INTO tool_rules (workspace_id, tool, rule) VALUES ($1, 'bash', 'deny'))
		INSERT INTO tool_definitions (workspace_id, server_id, own_name, name, definition, hash, label, enabled)
		SELECT $1, s.id, x.own, 'crm__' || x.own, '{}', 'h', x.label, x.enabled
		FROM s, (VALUES ('find', 'read_only', true), ('rename', 'changes', true), ('off', 'read_only', false)) AS x (own, label, enabled)`,
		w.workspace.ID); err != nil {
		t.Fatal(err)
	}
	r := w.replica(t, func(c *turn.Config) {
		c.Permissions = permission.New(c.Pool)
		c.Runner = toolenv.New(toolenv.Config{Pool: c.Pool, Vault: c.Vault})
		c.OwnTools = func(_ context.Context, workspace uuid.UUID, _ *toolenv.Run) ([]tool.Tool, error) {
			if workspace != w.workspace.ID {
				t.Errorf("the tools of %s", workspace)
			}
			return []tool.Tool{named("crm__find"), named("crm__off"), named("crm__rename")}, nil
		}
	})
	st := w.start(t, r, "rename")
	question(t, r, st)
	requests := script.Requests()
	first := string(requests[0].Body)
	for name, offered := range map[string]bool{"bash": false, "read": true, "crm__find": true, "crm__off": false, "crm__rename": true} {
		if strings.Contains(first, `"name":"`+name+`"`) != offered {
			t.Errorf("%s is offered: %v", name, !offered)
		}
	}
	last := string(requests[len(requests)-1].Body)
	if !strings.Contains(last, "crm__find ran") || !strings.Contains(last, "The tool crm__off is disabled") ||
		strings.Contains(last, "crm__rename ran") {
		t.Errorf("the results: %s", last)
	}
	if len(requests) != 3 {
		t.Errorf("%d requests", len(requests))
	}
}

// TestToolsOfCallersFollowTheWorkspace sends tools with names that the workspace has, or denies.
func TestToolsOfCallersFollowTheWorkspace(t *testing.T) {
	t.Parallel()
	script := modeltest.Say("Done.")
	w := newWorld(t, script)
	store := toolset.NewStore(w.pool)
	_, err := store.AddHTTP(t.Context(), w.workspace.ID, toolset.Entry{Name: "order", URL: "https://erp.example"},
		[]toolset.HTTPTool{{Definition: toolset.Definition{Description: "Order.", HTTP: &toolset.Request{Method: "POST", Path: "/"}}}})
	if err != nil {
		t.Fatal(err)
	}
	r := w.replica(t, func(c *turn.Config) { c.Permissions, c.CheckNames = permission.New(c.Pool), store.CheckNames })
	send := func(names ...string) (turn.Started, error) {
		var tools []turn.CallerTool
		for _, name := range names {
			tools = append(tools, turn.CallerTool{Name: name})
		}
		return r.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Command: "x", Tools: tools})
	}
	var many []string
	for i := range toolset.MaxTools {
		many = append(many, fmt.Sprintf("t%d", i))
	}
	for param, names := range map[string][]string{"/tools/1/name": {"get", "order"}, "/tools": many} {
		_, err := send(names...)
		if f := fault.From(err); f == nil || len(f.Detail.Violations) != 1 || f.Detail.Violations[0].Param != param {
			t.Errorf("%s: %v", param, err)
		}
	}
	if err := permission.New(w.pool).Set(t.Context(), w.workspace.ID, "send_mail", permission.Deny); err != nil {
		t.Fatal(err)
	}
	st, err := send("get", "send_mail")
	if err != nil {
		t.Fatal(err)
	}
	read(t, r, st)
	body := string(script.Requests()[0].Body)
	if !strings.Contains(body, `"name":"get"`) || strings.Contains(body, "send_mail") {
		t.Errorf("offered: %s", body)
	}
}
