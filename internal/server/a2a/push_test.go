package a2a_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/wait"
)

// told parses a notification of a task in the caller's version.
func (c *caller) told(n notification) *task {
	c.t.Helper()
	var wrapped struct {
		Kind string
		Task json.RawMessage
	}
	if err := json.Unmarshal(n.body, &wrapped); err != nil || (wrapped.Task != nil) != (c.v == "1.0") ||
		(wrapped.Kind == "task") != (c.v == "0.3") {
		c.t.Errorf("%s: %v", n.body, err)
	}
	return c.read(n.body)
}

func TestAReceiverHearsOfItsTask(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		conf := c.name(
			`{"returnImmediately":true,"taskPushNotificationConfig":{"url":"http://hook.example/a","token":"mine",`+
				`"authentication":{"scheme":"Bearer","credentials":"hush"}}}`,
			`{"blocking":false,"pushNotificationConfig":{"url":"http://hook.example/a","token":"mine",`+
				`"authentication":{"schemes":["Bearer"],"credentials":"hush"}}}`)
		got := c.read(c.ask(c.name("SendMessage", "message/send"), c.params(unique(), text(asking), conf)))
		n := wait.Receive(t, "a request at the hook", c.hook.got)
		asked := c.told(n)
		if asked.ID != got.ID || asked.state() != "TASK_STATE_INPUT_REQUIRED" ||
			!strings.Contains(string(asked.Status.Message.Parts[1].Data), "https://parley.example/api/workspaces/") {
			t.Errorf("%s", n.body)
		}
		if h := n.header; h.Get("Authorization") != "Bearer hush" || h.Get("X-A2A-Notification-Token") != "mine" ||
			h.Get("Webhook-Signature") == "" ||
			h.Get("Content-Type") != c.name("application/a2a+json", "application/json") {
			t.Errorf("%v", h)
		}
		c.ask(c.name("SendMessage", "message/send"), c.params(unique(), data(`{"decision":"allow"}`), "", fmt.Sprintf(`"taskId":%q`, got.ID)))
		if end := c.told(wait.Receive(t, "a request at the hook", c.hook.got)); end.ID != got.ID || end.state() != "TASK_STATE_COMPLETED" ||
			!strings.HasSuffix(end.said("answer"), "It is done.") {
			t.Errorf("%+v", end)
		}
	})
}

func TestReceiversAreManaged(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		st := c.stream(held)
		id := st.until("WORKING")[0].task.ID
		c.Gate.Await(t)
		set := func(name, path string) json.RawMessage {
			conf := fmt.Sprintf(`"id":%q,"url":"http://hook.example/%s","token":"mine","authentication":%s`, name, path,
				c.name(`{"scheme":"Basic","credentials":"hush"}`, `{"schemes":["Basic"],"credentials":"hush"}`))
			return c.ask(c.name("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set"),
				c.name(fmt.Sprintf(`{"taskId":%q,%s}`, id, conf), fmt.Sprintf(`{"taskId":%q,"pushNotificationConfig":{%s}}`, id, conf)))
		}
		get, of := c.name("GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get"), func(name string) string {
			return c.name(fmt.Sprintf(`{"taskId":%q,"id":%q}`, id, name), fmt.Sprintf(`{"id":%q,"pushNotificationConfigId":%q}`, id, name))
		}
		list, all := c.name("ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list"),
			c.name(fmt.Sprintf(`{"taskId":%q}`, id), fmt.Sprintf(`{"id":%q}`, id))
		c.refused(-32001, get, of("one"))
		for _, answer := range []json.RawMessage{set("one", "a"), set("two", "b"), set("two", "c"), c.ask(get, of("two")), c.ask(list, all)} {
			if s := string(answer); strings.Contains(s, "hush") || strings.Contains(s, "mine") || !strings.Contains(s, "Basic") ||
				!strings.Contains(s, id) {
				t.Errorf("%s", s)
			}
		}
		if s := string(c.ask(get, of("two"))); !strings.Contains(s, "hook.example/c") {
			t.Errorf("%s", s)
		}
		if s := string(c.ask(list, all)); strings.Count(s, "hook.example") != 2 || c.v == "1.0" != strings.Contains(s, `"configs":`) {
			t.Errorf("%s", s)
		}
		remove := c.name("DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete")
		for range 2 {
			if s := string(c.ask(remove, of("one"))); s != c.name("{}", "null") {
				t.Errorf("%s", s)
			}
		}
		e := c.refused(-32602, c.name("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set"),
			fmt.Sprintf(
				`{"taskId":%q,"url":"http://hook.example/","authentication":{"credentials":"hush"},`+
					`"pushNotificationConfig":{"url":"http://hook.example/","authentication":{"credentials":"hush"}}}`, id))
		if at := e.places(t); len(at) == 0 || at[0] != c.name("authentication/scheme", "pushNotificationConfig/authentication/schemes") {
			t.Errorf("%v", at)
		}
		for _, url := range []string{"http://127.0.0.1/", "https://[::1]/", "ftp://hook.example/", "nonsense", ""} {
			e := c.refused(-32602, c.name("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set"),
				fmt.Sprintf(`{"taskId":%q,"url":%q,"pushNotificationConfig":{"url":%q}}`, id, url, url))
			if e.Message == "" {
				t.Errorf("%s: %+v", url, e)
			}
		}
		for i := range 9 {
			set(fmt.Sprintf("more-%d", i), "d")
		}
		c.refused(-32602, c.name("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set"),
			fmt.Sprintf(`{"taskId":%q,"url":"http://hook.example/","pushNotificationConfig":{"url":"http://hook.example/"}}`, id))
		if c.v == "1.0" {
			var names []string
			for token := ""; ; {
				var page struct {
					Configs       []struct{ ID string }
					NextPageToken string
				}
				if err := json.Unmarshal(c.ask(list, fmt.Sprintf(`{"taskId":%q,"pageSize":4,"pageToken":%q}`, id, token)),
					&page); err != nil || len(page.Configs) > 4 {
					t.Fatalf("%+v %v", page, err)
				}
				for _, conf := range page.Configs {
					names = append(names, conf.ID)
				}
				if token = page.NextPageToken; token == "" {
					break
				}
			}
			if strings.Join(names, " ") != "two more-0 more-1 more-2 more-3 more-4 more-5 more-6 more-7 more-8" {
				t.Errorf("%v", names)
			}
			c.refused(-32602, list, fmt.Sprintf(`{"taskId":%q,"pageToken":"nobody"}`, id))
			c.refused(-32602, list, fmt.Sprintf(`{"taskId":%q,"pageSize":0}`, id))
		}
		c.Gate.Leave <- struct{}{}
		st.rest()
		for range 10 {
			n := wait.Receive(t, "a request at the hook", c.hook.got)
			if c.told(n).state() != "TASK_STATE_COMPLETED" || n.header.Get("Authorization") != "Basic hush" {
				t.Errorf("%v %s", n.header, n.body)
			}
		}
		if len(c.hook.got) != 0 {
			t.Errorf("a removed receiver is notified: %s", wait.Receive(t, "a request at the hook", c.hook.got).body)
		}
	})
}
