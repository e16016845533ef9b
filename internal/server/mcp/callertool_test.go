package mcp_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/turn"
)

// TestCallersToolsOfAnotherProgram: a turn whose message brought tools along waits for their results
// after an approval. The MCP client decides the approval, is not asked for the results, and learns
// where they are posted.
func TestCallersToolsOfAnotherProgram(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.connect(t, s.key, nil)
	_, err := s.Turns.Start(t.Context(), turn.Request{Workspace: s.Workspace, Command: "@call touch {} mine {}\n@say Done.",
		Tools: []turn.CallerTool{{Name: "mine"}}})
	if err != nil {
		t.Fatal(err)
	}
	var pending told
	wait.For(t, "the approval", func() bool {
		pending = c.call("list_pending", nil)
		return len(pending.Data) == 1
	})
	got := c.call("decide_approval", map[string]any{"approval_id": pending.Data[0].ApprovalID, "decision": "allow", "wait": true})
	if got.failed || !strings.Contains(string(got.Outcome), `"error":"tool_required"`) || !strings.Contains(string(got.Outcome),
		`"reply_url":"`+s.URL) ||
		!strings.Contains(got.text, "results of tools of the program that sent the message") {
		t.Errorf("%s\n%s", got.raw, got.text)
	}
	if left := c.call("list_pending", nil); len(left.Data) > 0 {
		t.Errorf("still pending: %s", left.raw)
	}
	busy := c.call("send_message", map[string]any{"command": "hello", "session_id": pending.Data[0].SessionID})
	if !busy.failed || strings.Contains(busy.text, "list_pending") {
		t.Errorf("another message: %s", busy.text)
	}
}
