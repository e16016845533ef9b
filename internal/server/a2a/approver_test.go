package a2a_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/workspace"
)

// TestApproverIsNotTheSender checks a workspace that requires another approver: the task's question
// states it, and the sender's decision to allow is rejected.
func TestApproverIsNotTheSender(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		change := workspace.Change{SeparateApprover: new(true), AdminPatterns: new(true)}
		if _, err := c.Workspaces.Update(t.Context(), c.Workspace.ID, change); err != nil {
			t.Fatal(err)
		}
		method := c.name("SendMessage", "message/send")
		asked := c.say(asking)
		if text := *asked.Status.Message.Parts[0].Text; !strings.Contains(text, "The key that sent the message cannot allow it.") {
			t.Errorf("%s", text)
		}
		on := fmt.Sprintf(`"taskId":%q`, asked.ID)
		answer := func(object string) string { return c.params(unique(), data(object), "", on) }
		if e := c.refused(-32000, method, answer(`{"decision":"allow"}`)); !strings.Contains(string(e.Data), "APPROVER_IS_SENDER") {
			t.Errorf("%s %s", e.Message, e.Data)
		}
		other := c.by(c.Issue(t, c.Workspace, apikey.A2A, apikey.Chat))
		if e := other.refused(-32602, method, answer(`{"decision":"allow","allowlist_pattern":"touch"}`)); !strings.Contains(string(e.Data),
			"INVALID_ALLOWLIST_PATTERN") {
			t.Errorf("%s %s", e.Message, e.Data)
		}
		other.ask(method, answer(`{"decision":"allow"}`))
		denied := c.say(asking)
		c.ask(method, c.params(unique(), data(`{"decision":"deny"}`), "", fmt.Sprintf(`"taskId":%q`, denied.ID)))
	})
}

// TestApproverNeedsTheScope checks that the question names the scope that an approver needs, and
// that a key without it can only deny.
func TestApproverNeedsTheScope(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		method := c.name("SendMessage", "message/send")
		asked := c.say("@call wiki_write {\"page\":\"tea\",\"content\":\"x\"}\n@say Done.")
		if text := *asked.Status.Message.Parts[0].Text; !strings.Contains(text, "Only a key with the scope wiki:write can allow this.") {
			t.Errorf("%s", text)
		}
		answer := func(decision string) string {
			return c.params(unique(), data(fmt.Sprintf(`{"decision":%q}`, decision)), "", fmt.Sprintf(`"taskId":%q`, asked.ID))
		}
		if e := c.refused(-32000, method, answer("allow")); !strings.Contains(string(e.Data), "INSUFFICIENT_SCOPE") ||
			!strings.Contains(e.Message, "wiki:write") {
			t.Errorf("%s %s", e.Message, e.Data)
		}
		c.ask(method, answer("deny"))
	})
}
