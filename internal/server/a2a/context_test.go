package a2a_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
)

// TestAContextThatItsClientNames: a contextId that a client has made is a conversation of its key,
// and comes back as it was sent.
func TestAContextThatItsClientNames(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		send, get := c.name("SendMessage", "message/send"), c.name("GetTask", "tasks/get")
		other := c.by(c.Issue(t, c.Workspace, apikey.A2A))
		sessions := func() (n int) {
			if err := c.Pool.QueryRow(t.Context(), `SELECT count(*) FROM sessions`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		for i, name := range []string{"conversation: 1 " + c.v, unique() + "-0000", "9b2d1c9e-5f0a-4c58-9a55-" + fmt.Sprintf("%012x",
			len(c.v)*1000+int(c.v[0]))} {
			before, on := sessions(), fmt.Sprintf(`"contextId":%q`, name)
			id := unique()
			one := c.read(c.ask(send, c.params(id, text("@say One."), "", on)))
			two := c.read(c.ask(send, c.params(unique(), text("@say Two."), "", on)))
			if one.ContextID != name || two.ContextID != name || one.History[0].ContextID != name || one.ID == two.ID || sessions() != before+1 {
				t.Fatalf("%d: %+v %+v, %d sessions", i, one, two, sessions()-before)
			}
			if again := c.read(c.ask(send, c.params(id, text("@say One."), "", on))); again.ID != one.ID {
				t.Errorf("the same message is the task %s", again.ID)
			}
			if got := c.read(c.ask(get, fmt.Sprintf(`{"id":%q}`, one.ID))); got.ContextID != name {
				t.Errorf("%+v", got)
			}
			if c.v == "1.0" {
				if list := string(c.ask("ListTasks", fmt.Sprintf(`{"contextId":%q}`, name))); !strings.Contains(list, `"totalSize":2`) {
					t.Errorf("%s", list)
				}
			}
			frames := c.stream("@text 3 deltas", on).rest()
			if frames[0].task.ContextID != name || frames[len(frames)-1].stat.ContextID != name {
				t.Errorf("a stream of %s and %s", frames[0].task.ContextID, frames[len(frames)-1].stat.ContextID)
			}
			if theirs := other.read(other.ask(send, c.params(unique(), text("@say Mine."), "", on))); theirs.ContextID != name ||
				sessions() != before+2 {
				t.Errorf("another key: %+v, %d sessions", theirs, sessions()-before)
			}
		}
		asked := c.say(asking, `"contextId":"to be asked `+c.v+`"`)
		answer := func(context string) string {
			return c.params(unique(), data(`{"decision":"allow"}`), "", fmt.Sprintf(`"taskId":%q,"contextId":%q`, asked.ID, context))
		}
		c.refused(-32602, send, answer("another"))
		if end := c.read(c.ask(send, answer(asked.ContextID))); end.state() != "TASK_STATE_COMPLETED" {
			t.Errorf("%+v", end)
		}
		c.refused(-32602, send, c.params(unique(), text("hi"), "", `"contextId":"x"`, `"metadata":{"caller_id":"y"}`))
		c.refused(-32602, send, c.params(unique(), text("hi"), "", `"contextId":"`+strings.Repeat("x", 201)+`"`))
		c.refused(-32602, send, c.params(unique(), text("hi"), "", `"contextId":"0197a0b4-7c3e-7cc0-8a3a-2f6f0f1b7f10"`))
	})
}
