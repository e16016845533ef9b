package mcp_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/workspace"
)

// TestApproverIsNotTheSender checks a workspace that requires another approver: decide_approval
// with the sender's key is rejected, and the question states the requirement.
func TestApproverIsNotTheSender(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	change := workspace.Change{SeparateApprover: new(true), AdminPatterns: new(true)}
	if _, err := s.Workspaces.Update(t.Context(), s.Workspace.ID, change); err != nil {
		t.Fatal(err)
	}
	sender := s.connect(t, s.key, nil)
	other := s.connect(t, s.Issue(t, s.Workspace, apikey.MCP, apikey.Chat), nil)
	asked := sender.call("send_message", map[string]any{"command": asking})
	if !strings.Contains(asked.text, "The key that sent the message cannot allow it.") {
		t.Errorf("%s", asked.text)
	}
	allow := map[string]any{"approval_id": asked.Input.ApprovalID, "decision": "allow"}
	if d := sender.call("decide_approval", allow); !d.failed || d.Fault.Code != "APPROVER_IS_SENDER" {
		t.Errorf("%s", d.raw)
	}
	pattern := map[string]any{"approval_id": asked.Input.ApprovalID, "decision": "allow", "allowlist_pattern": "touch"}
	if d := other.call("decide_approval", pattern); !d.failed || d.Fault.Code != "INVALID_ALLOWLIST_PATTERN" ||
		!strings.Contains(d.text, "administrators") {
		t.Errorf("%s", d.raw)
	}
	if d := other.call("decide_approval", allow); d.failed {
		t.Errorf("%s", d.raw)
	}
}
