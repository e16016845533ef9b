package a2a_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/workspace"
)

// places returns the fields that an error names, in either version.
func (e *rpcError) places(t *testing.T) (list []string) {
	t.Helper()
	type violation struct{ Param, Field string }
	type detail struct {
		Param           string
		Violations      []violation
		FieldViolations []violation
	}
	var details []detail
	if err := json.Unmarshal(e.Data, &details); err != nil {
		var one detail
		if err := json.Unmarshal(e.Data, &one); err != nil {
			t.Fatalf("%s", e.Data)
		}
		details = []detail{one}
	}
	for _, d := range details {
		for _, v := range append(d.Violations, d.FieldViolations...) {
			list = append(list, strings.TrimPrefix(v.Param, "/")+strings.ReplaceAll(v.Field, ".", "/"))
		}
		if d.Param != "" && len(d.Violations) == 0 {
			list = append(list, d.Param)
		}
	}
	return list
}

// TestErrorsNameWhatTheCallerSent checks that errors use the fields of this protocol, at their
// place in the request, and no names of another protocol.
func TestErrorsNameWhatTheCallerSent(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		send, set := c.name("SendMessage", "message/send"), c.name("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set")
		push := c.name("taskPushNotificationConfig", "pushNotificationConfig")
		id := unique()
		done := c.read(c.ask(send, c.params(id, text("@say Once."), "")))
		c = c.by(c.Issue(t, c.Workspace, apikey.A2A, apikey.Chat)) // for patterns
		asks := c.say(asking)
		on := fmt.Sprintf(`"taskId":%q`, asks.ID)
		answer := unique()
		for _, test := range []struct{ method, params, code, place string }{
			{send, c.params(id, text("@say Twice."), ""), "IDEMPOTENCY_KEY_REUSED", "message/messageId"},
			{send, c.params(unique(), text("@say Hi."), fmt.Sprintf(`{%q:{"url":"http://127.0.0.1/"}}`, push)), "INVALID_CALLBACK_URL",
				"configuration/" + push + "/url"},
			{set, c.name(fmt.Sprintf(`{"taskId":%q,"url":"ftp://x/"}`, done.ID),
				fmt.Sprintf(`{"taskId":%q,"pushNotificationConfig":{"url":"ftp://x/"}}`, done.ID)),
				"INVALID_CALLBACK_URL", c.name("url", "pushNotificationConfig/url")},
			{send, c.params(unique(), text("@say Hi."), "", `"contextId":"0197a0b4-7c3e-7cc0-8a3a-2f6f0f1b7f10"`), "SESSION_NOT_FOUND",
				"message/contextId"},
			{send, c.params(unique(), text("@say Hi."), "", `"metadata":{"limits":{"max_turns":0}}`), "INVALID_REQUEST",
				"message/metadata/limits/max_turns"},
			{send, strings.TrimSuffix(c.params(unique(), text("@say Hi."), ""), "}") + `,"metadata":{"caller_id":7}}`, "INVALID_REQUEST",
				"metadata/caller_id"},
			{send, c.params(unique(), data(`{"skill":"nobody"}`), ""), "UNKNOWN_SKILL", "message/parts/0/data/skill"},
			{send, c.params(unique(), data(`{"n":1}`), "", `"metadata":{"skill":7}`), "INVALID_REQUEST", "message/metadata/skill"},
			{send, c.params(unique(), text("@say Hi."), "", `"metadata":{"secret_input":["NOBODY"]}`), "UNKNOWN_SECRET",
				"message/metadata/secret_input"},
			{send, c.params(unique(), text(" "), ""), "INVALID_REQUEST", "message/parts"},
			{send, c.params(unique(), data(`{"decision":"perhaps"}`), "", on), "INVALID_REQUEST", "message/parts/0/data/decision"},
			{send, c.params(unique(), data(`{"decision":"allow","allowlist_pattern":"read(x)"}`), "", on), "INVALID_ALLOWLIST_PATTERN",
				"message/parts/0/data/allowlist_pattern"},
			{send, c.params(answer, data(`{"decision":"allow"}`), "", on), "", ""},
			{send, c.params(answer, data(`{"decision":"deny"}`), "", on), "IDEMPOTENCY_KEY_REUSED", "message/messageId"},
		} {
			if test.code == "" {
				c.ask(test.method, test.params)
				continue
			}
			e := c.refused(-32602, test.method, test.params)
			for _, at := range e.places(t) {
				if at != test.place {
					t.Errorf("%s is wrong at %s, want %s", test.params, at, test.place)
				}
			}
			told := e.Message + string(e.Data)
			if len(e.places(t)) == 0 || !strings.Contains(told, test.code) {
				t.Errorf("%s: %s", test.params, told)
			}
			for _, word := range []string{"Idempotency-Key", "callback/", "session", "Retry-After", "/command", " turn"} {
				if strings.Contains(told, word) {
					t.Errorf("%s: the caller never sent a %s: %s", test.params, word, told)
				}
			}
		}
	})
}

// TestAPartIsOfOneKind checks that a part with two kinds of content is rejected.
func TestAPartIsOfOneKind(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		send := c.name("SendMessage", "message/send")
		wrong := []string{`[{"kind":"text","text":"a","data":{}}]`, `[{"kind":"data","data":{"a":1},"text":"a"}]`, `[{"kind":"text"}]`,
			`[{"kind":"text","text":null}]`,
			c.name(`[{"text":"a","url":"https://example.com/"}]`, `[{"text":"a"}]`), c.name(`[{"url":"https://example.com/","raw":"aGk="}]`,
				`[{"kind":"data","text":"a"}]`),
			c.name(`[{"file":{"uri":"https://example.com/"}}]`, `[{"kind":"image","text":"a"}]`), c.name(`["text"]`, `[{"kind":"data","data":5}]`)}
		for _, parts := range wrong {
			e := c.refused(-32602, send, c.params(unique(), parts, ""))
			if at := e.places(t); len(at) == 0 || !strings.HasPrefix(at[0], "message/parts/0") {
				t.Errorf("%s: %s %v", parts, e.Message, at)
			}
		}
		// In 1.0, data can be any JSON.
		if c.v == "1.0" {
			for _, value := range []string{"5", `"@say five"`, "[1,2]", "true"} {
				if got := c.read(c.ask(send, c.params(unique(), data(value), ""))); got.state() != "TASK_STATE_COMPLETED" ||
					*got.History[0].Parts[0].Text != value {
					t.Errorf("%s: %+v", value, got)
				}
			}
		}
	})
}

// TestABusyContextSaysWithWhat checks that the error has the usual details, and the task in
// progress.
func TestABusyContextSaysWithWhat(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		for _, command := range []string{held, asking} {
			first := c.read(c.ask(c.name("SendMessage", "message/send"), c.params(unique(), text(command),
				c.name(`{"returnImmediately":true}`, `{"blocking":false}`))))
			want := "still working"
			if command == held {
				c.Gate.Await(t)
			} else {
				frames := c.resume(first.ID, "")
				for f, ok := frames.next(); ok && f.state() != "INPUT_REQUIRED" && (f.task == nil ||
					f.task.state() != "TASK_STATE_INPUT_REQUIRED"); f, ok = frames.next() {
				}
				want = "waits for an answer"
			}
			e := c.refused(-32000, c.name("SendMessage", "message/send"), c.params(unique(), text("@say Me, too."), "",
				fmt.Sprintf(`"contextId":%q`, first.ContextID)))
			told := e.failure(t)
			if told["code"] != "TURN_IN_PROGRESS" || told["type"] != "conflict_error" || told["message"] != e.Message ||
				told["taskId"] != first.ID || told["contextId"] != first.ContextID ||
				!strings.Contains(e.Message, want) {
				t.Errorf("%s %s", e.Message, e.Data)
			}
			if command == held {
				c.Gate.Leave <- struct{}{}
			}
		}
	})
}

// failure returns the error of the HTTP API from the details of this one.
func (e *rpcError) failure(t *testing.T) (told map[string]any) {
	t.Helper()
	var details []struct {
		Type  string `json:"@type"`
		Value map[string]any
	}
	if json.Unmarshal(e.Data, &details) == nil {
		return details[len(details)-1].Value
	}
	if err := json.Unmarshal(e.Data, &told); err != nil {
		t.Fatalf("%s", e.Data)
	}
	return told
}

// TestWhoWaitsLearnsWhereTheTaskIs checks a blocking call on a server that stops: the error names
// the task that the client can continue with on another server.
func TestWhoWaitsLearnsWhereTheTaskIs(t *testing.T) {
	t.Parallel()
	for _, v := range []string{"1.0", "0.3"} {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			c := start(t, nil).speaks(t, v)
			go func() {
				<-c.Gate.Entered
				c.Halt()
			}()
			id := unique()
			e := c.refused(-32000, c.name("SendMessage", "message/send"), c.params(id, text(held), ""))
			told := e.failure(t)
			var task, context string
			if err := c.Pool.QueryRow(t.Context(), `SELECT id, session_id FROM turns`).Scan(&task, &context); err != nil {
				t.Fatal(err)
			}
			if told["taskId"] != task || told["contextId"] != context || told["code"] != "UNAVAILABLE" || told["message"] != e.Message ||
				!strings.Contains(e.Message, "was accepted") {
				t.Errorf("%s %s", e.Message, e.Data)
			}
			c.Gate.Leave <- struct{}{}
		})
	}
}

// TestALimitSaysHowLong checks that a rate-limited call gets the time to wait.
func TestALimitSaysHowLong(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if _, err := s.Workspaces.Update(t.Context(), s.Workspace.ID, workspace.Change{MessagesPerMinute: new(1)}); err != nil {
		t.Fatal(err)
	}
	c := s.speaks(t, "0.3")
	c.say("@say Hi.")
	e := c.refused(-32000, "message/send", c.params(unique(), text("@say Hi."), ""))
	told := e.failure(t)
	if told["code"] != "RATE_LIMITED" || strings.Contains(e.Message, "Retry-After") || !strings.Contains(e.Message,
		fmt.Sprintf("Wait %v s.", told["retry_after"])) {
		t.Errorf("%s %s", e.Message, e.Data)
	}
}
