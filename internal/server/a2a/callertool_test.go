package a2a_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/turn"
)

// TestCallersToolsOfAnotherProgram: a task that waits for results of its caller's tools is
// input-required with the calls as data, and no message answers it.
func TestCallersToolsOfAnotherProgram(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		st, err := c.Turns.Start(t.Context(), turn.Request{Workspace: c.Workspace, Command: "@call mine {\"n\":1}\n@say Done.",
			Tools: []turn.CallerTool{{Name: "mine"}}})
		if err != nil {
			t.Fatal(err)
		}
		id := st.Turn.String()
		wait.For(t, "the question", func() bool { return c.get(id).state() == "TASK_STATE_INPUT_REQUIRED" })
		raw := string(c.ask(c.name("GetTask", "tasks/get"), fmt.Sprintf(`{"id":%q}`, id)))
		for _, want := range []string{`"kind":"tool"`, `"tool":"mine"`, `"reply_url":"http`, "results of tools of the program"} {
			if !strings.Contains(raw, want) {
				t.Errorf("the task has no %s: %s", want, raw)
			}
		}
		c.refused(-32004, c.name("SendMessage", "message/send"), c.params(unique(), `[{"kind":"data","data":{"decision":"allow"}}]`, "",
			fmt.Sprintf(`"taskId":%q`, id)))
	})
}
