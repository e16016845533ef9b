package toolset_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/toolset"
)

// request defines a tool that has a request with an input.
func request(name, method, path, properties string, required ...string) toolset.HTTPTool {
	schema, _ := json.Marshal(map[string]any{"type": "object", "properties": json.RawMessage(properties), "required": append([]string{},
		required...)})
	return toolset.HTTPTool{Name: name, Definition: toolset.Definition{Description: "It does " + name + ".", Schema: schema,
		HTTP: &toolset.Request{Method: method, Path: path}}}
}

var api = toolset.Entry{Name: "erp", URL: "https://erp.example/v1", Headers: map[string]string{"X-Api-Key": "${ERP_KEY}"}}

// TestToolsOfAnHTTPAPI defines tools, and replaces them.
func TestToolsOfAnHTTPAPI(t *testing.T) {
	t.Parallel()
	s, pool, ws := newStore(t)
	ctx := t.Context()
	find := request("find", "get", "/customers/{id}", `{"id":{"type":"string"},"deep":{"type":"boolean"}}`, "id")
	rename := request("rename", "PUT", "/customers/{id}", `{"id":{"type":"string"},"name":{"type":"string"},"note":{}}`, "id", "name")
	rename.HTTP.In = map[string]toolset.Place{"note": toolset.InQuery}
	if _, err := s.AddHTTP(ctx, ws, api, []toolset.HTTPTool{find, rename}); err != nil {
		t.Fatal(err)
	}
	if got := usable(t, s, ws); !slices.Equal(got, []string{"erp__find: It does find.", "erp__rename: It does rename."}) {
		t.Fatalf("%q", got)
	}
	server, err := s.Find(ctx, ws, "erp")
	if err != nil || server.Kind != toolset.HTTP {
		t.Fatalf("%+v, %v", server, err)
	}
	for i, want := range []string{`{"method":"GET","path":"/customers/{id}","in":{"deep":"query","id":"path"},"later":false}`,
		`{"method":"PUT","path":"/customers/{id}","in":{"id":"path","name":"body","note":"query"},"later":false}`} {
		if got, _ := json.Marshal(server.Tools[i].Definition.HTTP); string(got) != want {
			t.Errorf("%s", got)
		}
	}
	if _, err := pool.Exec(ctx, `INSERT INTO tool_rules (workspace_id, tool, rule) VALUES ($1, 'erp__rename', 'allow')`, ws); err != nil {
		t.Fatal(err)
	}
	label, off := toolset.ReadOnly, false
	if _, err := s.SetTool(ctx, ws, "erp", "find", &label, &off); err != nil {
		t.Fatal(err)
	}
	find.Description = "Find one."
	erp := request("", "POST", "", `{}`)
	server, err = s.ReplaceHTTP(ctx, ws, "erp", []toolset.HTTPTool{find, erp})
	if err != nil || len(server.Tools) != 2 || server.Tools[0].Name != "erp" || server.Tools[0].Label != toolset.Changes ||
		server.Tools[1].Label != toolset.ReadOnly || server.Tools[1].Enabled || server.Tools[1].Definition.Description != "Find one." {
		t.Errorf("%+v, %v", server, err)
	}
	var rules int
	if err := pool.QueryRow(ctx, `SELECT count(*) FROM tool_rules`).Scan(&rules); err != nil || rules > 0 {
		t.Errorf("%d rules of removed tools, %v", rules, err)
	}
	if _, err := s.Accept(ctx, ws, "erp", "find", ""); code(err) != fault.ObjectConflict {
		t.Error(err)
	}
	if _, _, err := s.Add(ctx, ws, crm, "", []toolset.Offer{offer("find", "")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReplaceHTTP(ctx, ws, "crm", []toolset.HTTPTool{find}); code(err) != fault.ObjectConflict {
		t.Error(err)
	}
}

// TestHTTPToolsAreChecked adds definitions that no request can follow.
func TestHTTPToolsAreChecked(t *testing.T) {
	t.Parallel()
	s, _, ws := newStore(t)
	id := `{"id":{"type":"string"}}`
	with := func(t toolset.HTTPTool, in map[string]toolset.Place) []toolset.HTTPTool {
		t.HTTP.In = in
		return []toolset.HTTPTool{t}
	}
	for name, c := range map[string]struct {
		entry string
		tools []toolset.HTTPTool
		param string
	}{
		"built-in":         {"bash", []toolset.HTTPTool{request("", "GET", "/", `{}`)}, "/name"},
		"final answer":     {"final_answer", []toolset.HTTPTool{request("", "GET", "/", `{}`)}, "/name"},
		"none":             {"erp", nil, "/tools"},
		"twice":            {"erp", []toolset.HTTPTool{request("a", "GET", "/", `{}`), request("a", "GET", "/x", `{}`)}, "/tools/1/name"},
		"name":             {"erp", []toolset.HTTPTool{request("a b", "GET", "/", `{}`)}, "/tools/0/name"},
		"method":           {"erp", []toolset.HTTPTool{request("a", "TRACE", "/", `{}`)}, "/tools/0/http/method"},
		"no slash":         {"erp", []toolset.HTTPTool{request("a", "GET", "x", `{}`)}, "/tools/0/http/path"},
		"query":            {"erp", []toolset.HTTPTool{request("a", "GET", "/x?y=1", `{}`)}, "/tools/0/http/path"},
		"dots":             {"erp", []toolset.HTTPTool{request("a", "GET", "/x/../y", `{}`)}, "/tools/0/http/path"},
		"line":             {"erp", []toolset.HTTPTool{request("a", "GET", "/x\r\nHost: y", `{}`)}, "/tools/0/http/path"},
		"optional in path": {"erp", []toolset.HTTPTool{request("a", "GET", "/{id}", id)}, "/tools/0/http/path"},
		"unknown in path":  {"erp", []toolset.HTTPTool{request("a", "GET", "/{x}", id, "x")}, "/tools/0/http/path"},
		"path without it":  {"erp", with(request("a", "GET", "/", id), map[string]toolset.Place{"id": toolset.InPath}), "/tools/0/http/in/id"},
		"body of GET":      {"erp", with(request("a", "GET", "/", id), map[string]toolset.Place{"id": toolset.InBody}), "/tools/0/http/in/id"},
		"place":            {"erp", with(request("a", "POST", "/", id), map[string]toolset.Place{"id": "cookie"}), "/tools/0/http/in/id"},
		"unknown member":   {"erp", with(request("a", "POST", "/", id), map[string]toolset.Place{"x": toolset.InBody}), "/tools/0/http/in/x"},
		"two bodies": {"erp", with(request("a", "POST", "/", `{"a":{},"b":{}}`), map[string]toolset.Place{"a": toolset.WholeBody}),
			"/tools/0/http/in"},
		"name of a member": {"erp", []toolset.HTTPTool{request("a", "GET", "/", `{"a[b]":{}}`)}, "/tools/0/input_schema/properties/a[b]"},
		"schema": {"erp", []toolset.HTTPTool{request("a", "GET", "/", `{"id":{"type":"text"}}`)},
			"/tools/0/input_schema/properties/id/type"},
		"time": {"erp", []toolset.HTTPTool{{Definition: toolset.Definition{Description: "x",
			HTTP: &toolset.Request{Method: "GET", Timeout: 601}}}}, "/tools/0/http/timeout_seconds"},
		"no request": {"erp", []toolset.HTTPTool{{Definition: toolset.Definition{Description: "x"}}}, "/tools/0/http"},
		"no description": {"erp", []toolset.HTTPTool{{Definition: toolset.Definition{HTTP: &toolset.Request{Method: "GET"}}}},
			"/tools/0/description"},
		"label": {"erp", []toolset.HTTPTool{{Label: new(toolset.Label("none")), Definition: toolset.Definition{Description: "x",
			HTTP: &toolset.Request{Method: "GET"}}}}, "/tools/0/label"},
		"long description": {"erp", []toolset.HTTPTool{{Definition: toolset.Definition{Description: strings.Repeat("x",
			toolset.MaxDescription+1), HTTP: &toolset.Request{Method: "GET"}}}}, "/tools/0/description"},
		"entry with a user": {"erp", []toolset.HTTPTool{request("a", "GET", "/", `{}`)}, "/url"},
		"signature":         {"erp", []toolset.HTTPTool{request("a", "GET", "/", `{}`)}, "/headers/Webhook-Id"},
	} {
		e := toolset.Entry{Name: c.entry, URL: "https://erp.example"}
		switch name {
		case "entry with a user":
			e.URL = "https://user@erp.example"
		case "signature":
			e.Headers = map[string]string{"Webhook-Id": "x"}
		}
		_, err := s.AddHTTP(t.Context(), ws, e, c.tools)
		f := fault.From(err)
		if f == nil || !slices.ContainsFunc(f.Detail.Violations, func(v fault.Violation) bool { return v.Param == c.param }) {
			t.Errorf("%s: %v", name, err)
		} else if len(f.Detail.Violations) > 2 {
			t.Errorf("%s: %d violations: %+v", name, len(f.Detail.Violations), f.Detail.Violations)
		}
	}
}

// TestAWorkspaceHasRoomForEveryProvider fills a workspace with tools.
func TestAWorkspaceHasRoomForEveryProvider(t *testing.T) {
	t.Parallel()
	s, _, ws := newStore(t)
	var offers []toolset.Offer
	for i := range toolset.MaxTools - 1 {
		offers = append(offers, offer(fmt.Sprintf("t%d", i), ""))
	}
	if _, _, err := s.Add(t.Context(), ws, crm, "", offers); err != nil {
		t.Fatal(err)
	}
	two := []toolset.HTTPTool{request("a", "GET", "/", `{}`), request("b", "GET", "/", `{}`)}
	if _, err := s.AddHTTP(t.Context(), ws, api, two); code(err) != fault.InvalidRequestBody {
		t.Errorf("one tool too many: %v", err)
	}
	if _, err := s.AddHTTP(t.Context(), ws, api, two[:1]); err != nil {
		t.Fatal(err)
	}
	server, _, err := s.Refresh(t.Context(), ws, "crm", "", append(offers, offer("more", "")))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(server.Tools, func(t toolset.Tool) bool { return t.OwnName == "more" })
	if i < 0 {
		t.Fatal("the new tool does not wait")
	}
	if _, err := s.Accept(t.Context(), ws, "crm", "more", server.Tools[i].OfferedHash); code(err) != fault.InvalidRequestBody {
		t.Errorf("an acceptance too many: %v", err)
	}
	if got := usable(t, s, ws); len(got) != toolset.MaxTools {
		t.Errorf("%d tools", len(got))
	}
}
