package rest_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/budget"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestBudgetIsToldInEveryProtocol sends a message over the workspace's budget in each protocol.
func TestBudgetIsToldInEveryProtocol(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if err := budget.New(s.pool).Set(t.Context(), s.Workspace.ID, budget.Budget{Kind: budget.Workspace,
		MaxTokens: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	message := call{method: "POST", path: "messages", body: body(t, "@say hi", `"stream":false`)}
	wait.For(t, "messages to be rejected", func() bool {
		r := s.get(t, message)
		if r.status != 429 {
			return false
		}
		if r.Error.Code != "BUDGET_EXCEEDED" || r.Error.RetryAfter < 1 || r.header.Get("Retry-After") == "" ||
			!strings.Contains(r.text, `"budget":"workspace"`) {
			t.Errorf("%s %v", r.text, r.header)
		}
		return true
	})
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/v1/chat/completions", `{"model":"demo","messages":[{"role":"user","content":"@say hi"}]}`, 429},
		{"/v1/responses", `{"model":"demo","input":"@say hi"}`, 429},
		{apitest.UIChatPath,
			`{"id":"c","trigger":"submit-message","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"@say hi"}]}]}`, 429},
		{apitest.RunsPath, `{"threadId":"t","runId":"r","protocolVersion":"1.0","state":{},"messages":[{"id":"m","role":"user",` +
			`"content":"@say hi"}],"tools":[],"context":[]}`, 429},
		{"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_message","arguments":{"command":"@say hi"}}}`, 200},
		{"/a2a", `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m","role":"user",` +
			`"parts":[{"kind":"text","text":"@say hi"}]},"configuration":{"blocking":true}}}`, 200},
	} {
		r := s.get(t, call{method: "POST", path: c.path, body: c.body, header: []string{"Accept", "application/json, text/event-stream"}})
		if r.status != c.status || !strings.Contains(r.text, "The budget of the workspace for today is used up") {
			t.Errorf("%s: %d %s", c.path, r.status, r.text)
		}
	}
	var left int
	err := s.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM sessions) - (SELECT count(*) FROM turns)`).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("rejected messages left %d sessions, %v", left, err)
	}
}
