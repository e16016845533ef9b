package mcp_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/wait"
)

const (
	readTools = "get_messages get_session list_pending list_sessions list_skills wiki_read wiki_search"
	allTools  = "cancel_session decide_approval get_messages get_session list_pending list_sessions list_skills save_wiki send_message " +
		"wiki_read wiki_search"
)

// sees returns the tools of a key with a scope, "" if it may not connect.
func sees(scopes ...apikey.Scope) string {
	switch has := apikey.Scopes(scopes); {
	case has.Allows(apikey.MCP):
		return allTools
	case has.Allows(apikey.MCPRead) && has.Allows(apikey.WikiWrite):
		return "get_messages get_session list_pending list_sessions list_skills save_wiki wiki_read wiki_search"
	case has.Allows(apikey.MCPRead):
		return readTools
	}
	return ""
}

// objects returns a call of every tool, on objects of a workspace.
func objects(session, approval, page string) map[string]map[string]any {
	return map[string]map[string]any{
		"send_message":    {"command": "@say x", "session_id": session},
		"list_skills":     {},
		"list_sessions":   {},
		"get_session":     {"session_id": session},
		"get_messages":    {"session_id": session},
		"list_pending":    {"session_id": session},
		"decide_approval": {"approval_id": approval, "decision": "deny"},
		"cancel_session":  {"session_id": session},
		"wiki_read":       {"page": page},
		"wiki_search":     {"query": "onboarding"},
		"save_wiki":       {"page": page, "content": "overwritten", "expected_version": 1},
	}
}

// TestEveryToolWithEveryScope checks that a key connects with mcp or mcp:read, lists the tools of
// its scopes, and gets the missing scope from every other tool.
func TestEveryToolWithEveryScope(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	keys := [][]apikey.Scope{{apikey.MCPRead, apikey.WikiWrite}, {apikey.MCPRead, apikey.Chat, apikey.SessionsRead, apikey.ToolsWrite},
		apikey.All}
	for _, scope := range apikey.All {
		keys = append(keys, []apikey.Scope{scope})
	}
	for _, scopes := range keys {
		name, key := apikey.Scopes(scopes).String(), s.Issue(t, s.Workspace, scopes...)
		want := sees(scopes...)
		if want == "" {
			r := s.post(t, key, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			if r.status != 403 || !strings.Contains(r.body, `"code":"INSUFFICIENT_SCOPE"`) ||
				!strings.Contains(r.body, `"required_scope":"mcp:read"`) ||
				r.header.Get("X-Accepted-Scopes") != "mcp:read, mcp" || !strings.Contains(r.header.Get("WWW-Authenticate"),
				`error="insufficient_scope"`) {
				t.Errorf("%s: %d %s %v", name, r.status, r.body, r.header)
			}
			continue
		}
		c := s.connect(t, key, nil)
		if got := c.names(); got != want {
			t.Errorf("%s sees %s", name, got)
		}
		for _, tool := range strings.Fields(allTools) { // no message recommends a tool that the key cannot call
			if told := c.InitializeResult().Instructions; strings.Contains(told, tool) && !slices.Contains(strings.Fields(want), tool) {
				t.Errorf("%s receives a mention of %s: %s", name, tool, told)
			}
		}
		for tool, args := range objects(uuid.NewString(), uuid.NewString(), "none") {
			got := c.call(tool, args)
			lacks := got.Fault != nil && got.Fault.Code == "INSUFFICIENT_SCOPE"
			if lacks == slices.Contains(strings.Fields(want), tool) {
				t.Errorf("%s calls %s: %s", name, tool, got.raw)
			}
			if lacks && (!got.failed || got.Fault.RequiredScope == "") {
				t.Errorf("%s calls %s: %s", name, tool, got.raw)
			}
		}
	}
	var turns int
	if err := s.Pool.QueryRow(t.Context(), `SELECT count(*) FROM turns`).Scan(&turns); err != nil || turns != 0 {
		t.Errorf("%d turns, %v", turns, err)
	}
}

// TestAPatternNeedsChat checks that adding an allow pattern, which applies to every conversation of
// the workspace, requires the chat scope.
func TestAPatternNeedsChat(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c, chats := s.connect(t, s.Issue(t, s.Workspace, apikey.MCP), nil), s.connect(t, s.Issue(t, s.Workspace, apikey.MCP, apikey.Chat), nil)
	for _, answer := range []map[string]any{{"decision": "deny"}, {"decision": "allow"}} {
		answer["approval_id"] = c.call("send_message", map[string]any{"command": asking}).Input.ApprovalID
		with := map[string]any{"approval_id": answer["approval_id"], "decision": "allow", "allowlist_pattern": "touch"}
		if d := c.call("decide_approval", with); !d.failed || d.Fault.Code != "INSUFFICIENT_SCOPE" || d.Fault.RequiredScope != "chat" ||
			!strings.Contains(d.text, "leave it out") {
			t.Errorf("%s", d.raw)
		}
		if d := chats.call("decide_approval", with); d.failed && d.Fault.Code == "INSUFFICIENT_SCOPE" { // no tool accepts such a pattern
			t.Errorf("with chat: %s", d.raw)
		}
		if d := c.call("decide_approval", answer); d.failed {
			t.Errorf("%v: %s", answer, d.raw)
		}
	}
}

// TestWorkspacesAreApart checks every object that a key of another workspace can name: the response
// is that of a missing object, matches that of the REST API, and changes nothing.
func TestWorkspacesAreApart(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	own := s.connect(t, s.key, nil)
	own.call("save_wiki", map[string]any{"page": "onboarding", "content": "# Onboarding\n\nOnboarding is ours.\n"})
	waiting := own.call("send_message", map[string]any{"command": asking, "caller_id": "anna", "idempotency_key": "k"})
	session, approval := waiting.SessionID, waiting.Input.ApprovalID

	_, key := s.Another(t)
	c := s.connect(t, key, nil)
	codes := map[string]string{"send_message": "SESSION_NOT_FOUND", "get_session": "SESSION_NOT_FOUND", "get_messages": "SESSION_NOT_FOUND",
		"cancel_session":  "SESSION_NOT_FOUND",
		"decide_approval": "APPROVAL_NOT_FOUND", "wiki_read": "FILE_NOT_FOUND", "save_wiki": "INVALID_REQUEST"}
	none := objects(uuid.NewString(), uuid.NewString(), "onboarding")
	for tool, args := range objects(session, approval, "onboarding") {
		got, want := c.call(tool, args), c.call(tool, none[tool])
		// Ids are repeated; everything else is equal.
		plain := strings.NewReplacer(session, "ID", approval, "ID", fmt.Sprint(none[tool]["session_id"]), "ID",
			fmt.Sprint(none[tool]["approval_id"]), "ID")
		if plain.Replace(string(got.raw)) != plain.Replace(string(want.raw)) || plain.Replace(got.text) != plain.Replace(want.text) {
			t.Errorf("%s distinguishes other workspaces' objects from missing ones:\n%s\n%s", tool, got.raw, want.raw)
		}
		if code := codes[tool]; code == "" && got.failed || code != "" && (!got.failed || got.Fault.Code != code) {
			t.Errorf("%s: %s", tool, got.raw)
		}
		if strings.Contains(string(got.raw), "ours") || strings.Contains(got.text, "ours") {
			t.Errorf("%s shows data of another workspace: %s", tool, got.raw)
		}
	}
	for path, tool := range map[string]string{
		"POST sessions/" + session + "/cancel":    "cancel_session",
		"GET sessions/" + session + "/messages":   "get_messages",
		"POST messages":                           "send_message",
		"POST approvals/" + approval + "/decide!": "decide_approval",
	} {
		method, path, _ := strings.Cut(path, " ")
		body, prefix := "", "/api/v1/workspaces/another/"
		switch tool {
		case "send_message":
			body = `{"command":"@say x","stream":false,"session_id":"` + session + `"}`
		case "decide_approval":
			body, prefix, path = `{"decision":"deny"}`, "/api/workspaces/another/", strings.TrimSuffix(path, "!")
		}
		rest := s.do(t, method, prefix+path, key, body, "Accept", "")
		var envelope struct {
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal([]byte(rest.body), &envelope); err != nil {
			t.Fatalf("%s: %v", rest.body, err)
		}
		if got := c.call(tool, objects(session, approval, "")[tool]); got.Fault.Code != envelope.Error.Code ||
			got.Fault.Message != envelope.Error.Message {
			t.Errorf("%s returns %s, REST %s", tool, got.raw, rest.body)
		}
	}
	// The same names in another workspace are other objects.
	if got := c.call("send_message", map[string]any{"command": "@say mine", "caller_id": "anna", "idempotency_key": "k"}); !got.Success ||
		got.SessionID == session {
		t.Errorf("%s", got.raw)
	}
	if now := own.call("get_session", map[string]any{"session_id": session}); now.Status != "thinking" {
		t.Errorf("%s", now.raw)
	}
	if now := own.call("wiki_read", map[string]any{"page": "onboarding"}); now.Version != 1 {
		t.Errorf("%s", now.raw)
	}
	if now := own.call("list_pending", nil); len(now.Data) != 1 {
		t.Errorf("%s", now.raw)
	}
}

// TestToolListsAreNotMixed checks that a list of tools is for keys of one set of scopes: no cache
// may serve it to others, and concurrent keys do not get each other's.
func TestToolListsAreNotMixed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	read := s.Issue(t, s.Workspace, apikey.MCPRead)
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list",` +
		`"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			key, saves := s.key, true
			if i%2 == 0 {
				key, saves = read, false
			}
			r := s.post(t, key, list, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")
			if r.status != 200 || strings.Contains(r.body, `"save_wiki"`) != saves || !strings.Contains(r.body, `"cacheScope":"private"`) ||
				!strings.Contains(r.body, `"ttlMs":0`) {
				t.Errorf("%d %s", r.status, r.body)
			}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
}
