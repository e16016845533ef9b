package a2a_test

import (
	"fmt"
	"testing"
)

// TestAMessageKeepsItsID: the id that a client gave its message comes back wherever the
// message does.
func TestAMessageKeepsItsID(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		id := "the client's own id " + unique()
		conf := c.name(`{"taskPushNotificationConfig":{"url":"http://hook.example/"}}`, `{"pushNotificationConfig":{"url":"http://hook.example/"}}`)
		same := func(where string, got *task) {
			t.Helper()
			if len(got.History) != 1 || got.History[0].MessageID != id || got.History[0].Role != c.name("ROLE_USER", "user") || got.History[0].TaskID != got.ID || got.History[0].ContextID != got.ContextID {
				t.Errorf("%s: %+v", where, got.History)
			}
		}
		s := c.open(c.name("SendStreamingMessage", "message/stream"), c.params(id, text(held), conf))
		first := s.until("WORKING")
		same("stream", first[0].task)
		<-c.Gate.Entered
		back, again := c.resume(first[0].task.ID, ""), c.resume(first[0].task.ID, first[0].id)
		c.Gate.Leave <- struct{}{}
		same("webhook", c.told(<-c.hook.got))
		same("resubscribe", back.rest()[0].task)
		same("resubscribe with Last-Event-ID", again.rest()[0].task)
		same("get", c.get(first[0].task.ID))
		same("the same message again", c.read(c.ask(c.name("SendMessage", "message/send"), c.params(id, text(held), conf))))
		if c.v == "1.0" {
			for _, one := range c.list(fmt.Sprintf(`{"contextId":%q,"historyLength":1}`, first[0].task.ContextID)).Tasks {
				same("list", one)
			}
		}
		s.rest()
	})
}
