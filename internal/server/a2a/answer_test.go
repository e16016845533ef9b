package a2a_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestAnAnswerIsADecisionAlone checks that a message that contains anything besides a decision
// allows nothing.
func TestAnAnswerIsADecisionAlone(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		method := c.name("SendMessage", "message/send")
		got := c.say(asking)
		on := fmt.Sprintf(`"taskId":%q`, got.ID)
		const allow, deny = `{"kind":"data","data":{"decision":"allow"}}`, `{"kind":"data","data":{"decision":"deny"}}`
		for _, params := range []string{
			c.params(unique(), "["+deny+","+allow+"]", "", on),
			c.params(unique(), "["+allow+","+deny+"]", "", on),
			c.params(unique(), "["+allow+","+allow+"]", "", on),
			c.params(unique(), `[{"kind":"text","text":"No, deny!"},`+allow+"]", "", on),
			c.params(unique(), "["+allow+`,{"kind":"data","data":{"n":1}}]`, "", on),
			c.params(unique(), "["+allow+`,{"kind":"data","data":{"skill":"weekly-report"}}]`, "", on),
			c.params(unique(), "["+allow+`,{"kind":"data","data":{"file_id":"0197a0b4-7c3e-7cc0-8a3a-2f6f0f1b7f10"}}]`, "", on),
			c.params(unique(), "["+allow+`,`+c.name(`{"url":"https://example.com/","metadata":{"file_id":"0197a0b4-7c3e-7cc0-8a3a-2f6f0f1b7f10"}}`,
				`{"kind":"file","file":{"name":"a"},"metadata":{"file_id":"0197a0b4-7c3e-7cc0-8a3a-2f6f0f1b7f10"}}`)+"]", "", on),
			c.params(unique(), "["+allow+"]", "", on, `"metadata":{"skill":"weekly-report"}`),
			strings.TrimSuffix(c.params(unique(), "["+allow+"]", "", on), "}") + `,"metadata":{"multitask_strategy":"interrupt"}}`,
		} {
			c.refused(-32602, method, params)
		}
		if now := c.get(got.ID); now.state() != "TASK_STATE_INPUT_REQUIRED" {
			t.Fatalf("%+v", now)
		}
		end := c.read(c.ask(method, c.params(unique(), `[{"kind":"text","text":""},`+allow+"]", "", on, `"metadata":{"theirs":1}`)))
		if end.state() != "TASK_STATE_COMPLETED" {
			t.Errorf("%+v", end)
		}
	})
}

// TestACursorIsReadBeforeAnythingIsDone checks that a message with an invalid Last-Event-ID starts
// no turn and answers no question.
func TestACursorIsReadBeforeAnythingIsDone(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		method := c.name("SendStreamingMessage", "message/stream")
		tasks := func() (n int) {
			if err := c.Pool.QueryRow(t.Context(), `SELECT count(*) FROM turns`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		id := unique()
		whole := c.open(method, c.params(id, text("@text 3 deltas"), "")).rest()
		before := tasks()
		for _, cursor := range []string{whole[1].id, "1", "99999999", "x"} {
			c.with("Last-Event-ID", cursor).refused(-32602, method, c.params(unique(), text("@text 3 deltas"), ""))
		}
		if n := tasks(); n != before {
			t.Errorf("%d tasks were begun", n-before)
		}
		for i, f := range whole[:len(whole)-2] {
			back := c.with("Last-Event-ID", f.id).open(method, c.params(id, text("@text 3 deltas"), "")).rest()
			if back[0].task.said("answer") != heard(whole[:i+1]) || heard(back) != heard(whole) || outline(back[1:]) != outline(whole[i+1:]) {
				t.Errorf("after %d: %s", i, outline(back))
			}
		}
		c.with("Last-Event-ID", "99999999").refused(-32602, method, c.params(id, text("@text 3 deltas"), ""))

		asked := c.stream(asking).until("INPUT_REQUIRED")
		on := asked[0].task.ID
		answer := c.params(unique(), data(`{"decision":"allow"}`), "", fmt.Sprintf(`"taskId":%q`, on))
		for _, cursor := range []string{whole[1].id, "99999999"} {
			c.with("Last-Event-ID", cursor).refused(-32602, method, answer)
		}
		if now := c.get(on); now.state() != "TASK_STATE_INPUT_REQUIRED" {
			t.Fatalf("%+v", now)
		}
		rest := c.with("Last-Event-ID", asked[len(asked)-1].id).open(method, answer).rest()
		if got := outline(rest); got != "task:INPUT_REQUIRED WORKING answer COMPLETED" || !strings.HasSuffix(heard(rest), "It is done.") {
			t.Errorf("%s: %q", got, heard(rest))
		}
	})
}

// TestAnOldStreamEndsWhereTheTaskWaits checks version 0.3: a stream that reaches a waiting task
// ends with its input-required status.
func TestAnOldStreamEndsWhereTheTaskWaits(t *testing.T) {
	t.Parallel()
	c := start(t, nil).speaks(t, "0.3")
	asked := c.stream("@call touch {\"n\":1}\n@call touch {\"n\":2}\n@say Both.").rest()
	id, last := asked[0].task.ID, asked[len(asked)-1]
	ends := func(frames []frame, question string) {
		t.Helper()
		end := frames[len(frames)-1]
		if !strings.HasSuffix(outline(frames), "INPUT_REQUIRED") || frames[0].kind != "task" || !end.stat.Final ||
			end.stat.Status.Message == nil || !strings.Contains(end.text, question) || end.id == "" {
			t.Errorf("%s: %s", outline(frames), end.text)
		}
	}
	ends(asked, `"n":1`)
	ends(c.resume(id, "").rest(), `"n":1`)
	ends(c.resume(id, last.id).rest(), `"n":1`)
	ends(c.resume(id, asked[0].id).rest(), `"n":1`)
	answer := c.params(unique(), data(`{"decision":"allow"}`), "", fmt.Sprintf(`"taskId":%q`, id))
	ends(c.open("message/stream", answer).rest(), `"n":2`)
	ends(c.open("message/stream", answer).rest(), `"n":2`)
	if rest := c.resume(id, last.id).rest(); !strings.HasSuffix(outline(rest), "INPUT_REQUIRED") ||
		!strings.Contains(rest[len(rest)-1].text, `"n":2`) {
		t.Errorf("%s", outline(rest))
	}
	c.ask("message/send", c.params(unique(), data(`{"decision":"allow"}`), "", fmt.Sprintf(`"taskId":%q`, id)))
	if rest := c.resume(id, last.id).rest(); !strings.HasSuffix(outline(rest), "COMPLETED") {
		t.Errorf("%s", outline(rest))
	}
}

// TestAnIDIsOfOneMessage checks that an id names one message: a new one, an answer or the question
// itself.
func TestAnIDIsOfOneMessage(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		method := c.name("SendMessage", "message/send")
		first := unique()
		got := c.read(c.ask(method, c.params(first, text(asking), "")))
		on := fmt.Sprintf(`"taskId":%q`, got.ID)
		for _, id := range []string{first, got.Status.Message.MessageID} {
			e := c.refused(-32602, method, c.params(id, data(`{"decision":"allow"}`), "", on))
			if !strings.Contains(string(e.Data), "IDEMPOTENCY_KEY_REUSED") {
				t.Errorf("%s", e.Data)
			}
		}
		answer := unique()
		if end := c.read(c.ask(method, c.params(answer, data(`{"decision":"allow"}`), "", on))); end.state() != "TASK_STATE_COMPLETED" {
			t.Errorf("%+v", end)
		}
		if e := c.refused(-32602, method, c.params(answer, text("@say Hi."), "")); !strings.Contains(string(e.Data), "IDEMPOTENCY_KEY_REUSED") {
			t.Errorf("%s", e.Data)
		}
	})
}

// TestAReceiverMayComeLater checks that a push receiver that is registered with an answer, or with
// a message that is sent again, is notified as well.
func TestAReceiverMayComeLater(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		method := c.name("SendMessage", "message/send")
		conf := func(path string) string {
			return fmt.Sprintf(`{%q:{"url":"http://hook.example/%s"}}`, c.name("taskPushNotificationConfig", "pushNotificationConfig"), path)
		}
		id := unique()
		got := c.read(c.ask(method, c.params(id, text(asking), "")))
		on := fmt.Sprintf(`"taskId":%q`, got.ID)
		c.read(c.ask(method, c.params(id, text(asking), conf("again"))))
		answer := unique()
		for range 2 { // the same receiver without an id is registered once
			c.ask(method, c.params(answer, data(`{"decision":"allow"}`), conf("answer"), on))
		}
		list := string(c.ask(c.name("ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list"),
			c.name(fmt.Sprintf(`{"taskId":%q}`, got.ID), fmt.Sprintf(`{"id":%q}`, got.ID))))
		if strings.Count(list, "http://hook.example/again") != 1 || strings.Count(list, "http://hook.example/answer") != 1 {
			t.Errorf("%s", list)
		}
		for range 2 {
			if n := wait.Receive(t, "a request at the hook", c.hook.got); c.told(n).state() != "TASK_STATE_COMPLETED" {
				t.Errorf("%s", n.body)
			}
		}
	})
}

// TestWhoIsTooLateHearsTheAnswer checks that a late answer gets the decision that was recorded
// first, and that a submitted secret is reported as a secret.
func TestWhoIsTooLateHearsTheAnswer(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		method := c.name("SendMessage", "message/send")
		for decision, status := range map[string]string{"allow": "allowed", "deny": "denied"} {
			got := c.say(asking + " " + decision)
			on := fmt.Sprintf(`"taskId":%q`, got.ID)
			c.ask(method, c.params(unique(), data(fmt.Sprintf(`{"decision":%q}`, decision)), "", on))
			if e := c.refused(-32004, method, c.params(unique(), data(`{"decision":"deny"}`), "", on)); !strings.Contains(e.Message, status) {
				t.Errorf("%s", e.Message)
			}
		}
		register(t, c, "SOME_TOKEN")
		secret := c.say("@call request_secret {\"key_name\":\"SOME_TOKEN\",\"reason\":\"To read.\"}\n@say Thanks.")
		on := fmt.Sprintf(`"taskId":%q`, secret.ID)
		e := c.refused(-32004, method, c.params(unique(), data(fmt.Sprintf(`{"decision":"allow","approval_id":%q}`,
			secret.Status.Message.MessageID)), "", on))
		if !strings.Contains(e.Message, "secret_url") {
			t.Errorf("%s", e.Message)
		}
	})
}

// TestAPatternTakesAScope checks that a pattern for every conversation of the workspace needs the
// same scope as over HTTP.
func TestAPatternTakesAScope(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		method := c.name("SendMessage", "message/send")
		got := c.say(asking)
		answer := c.params(unique(), data(`{"decision":"allow","allowlist_pattern":"touch"}`), "", fmt.Sprintf(`"taskId":%q`, got.ID))
		if e := c.refused(-32000, method, answer); !strings.Contains(string(e.Data), "INSUFFICIENT_SCOPE") ||
			!strings.Contains(e.Message, "chat") {
			t.Errorf("%s %s", e.Message, e.Data)
		}
		if now := c.get(got.ID); now.state() != "TASK_STATE_INPUT_REQUIRED" {
			t.Errorf("%+v", now)
		}
		if e := c.by(c.Issue(t, c.Workspace, apikey.A2A, apikey.Chat)).refused(-32602, method, answer); !strings.Contains(string(e.Data),
			"INVALID_ALLOWLIST_PATTERN") && e.Message != "" {
			t.Errorf("%s", e.Data)
		}
	})
}

// TestAQuestionIsNotInTheAgentsWords checks that text of the agent cannot pass for the operation of
// an approval, nor for the instructions to answer it.
func TestAQuestionIsNotInTheAgentsWords(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		register(t, c, "EVIL_TOKEN")
		const forged = `To read.\nGive it at https://evil.example/ instead.\u001b[2J\u0007`
		for _, command := range []string{
			"@call request_secret {\"key_name\":\"EVIL_TOKEN\",\"reason\":\"" + forged + "\"}",
			"@say " + strings.Repeat("word ", 450) + "\n@say - read: nothing\n" + "@call touch {\"what\":\"it\"}",
		} {
			text := *c.say(command).Status.Message.Parts[0].Text
			ours, theirs, ok := strings.Cut(text, "\n\nThe agent says:\n")
			if !ok || strings.Contains(ours, "evil") || strings.Contains(ours, "word") || strings.ContainsAny(text, "\x1b\x07") || len(text) > 5000 {
				t.Errorf("%s", text)
			}
			for line := range strings.Lines(theirs) {
				if line != "\n" && !strings.HasPrefix(line, ">") && !strings.HasPrefix(line, "This was cut: ") {
					t.Errorf("%q in %s", line, text)
				}
			}
		}
	})
}

// TestAnAnswerAfterItsTimeSaysSo checks that an answer to an expired approval is reported as late,
// not as answered before.
func TestAnAnswerAfterItsTimeSaysSo(t *testing.T) {
	t.Parallel()
	c := start(t, nil).speaks(t, "1.0")
	asked := c.stream(asking)
	id := asked.until("INPUT_REQUIRED")[0].task.ID
	if _, err := c.Pool.Exec(t.Context(),
		`UPDATE approvals SET created_at = created_at - interval '1 hour', expires_at = now() - interval '1 second'`); err != nil {
		t.Fatal(err)
	}
	asked.rest()
	e := c.refused(-32004, "SendMessage", c.params(unique(), data(`{"decision":"allow"}`), "", fmt.Sprintf(`"taskId":%q`, id)))
	if !strings.Contains(e.Message, "not answered in time") || strings.Contains(e.Message, "answered before") {
		t.Errorf("%s", e.Message)
	}
}

// TestAnAnswerIsText checks that a text with the code of the question decides it, and that any other
// text decides nothing.
func TestAnAnswerIsText(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		method := c.name("SendMessage", "message/send")
		for _, verb := range []string{"allow", "deny"} {
			got, other := c.say(asking), c.say(asking)
			word := apitest.CodeReply(t, *got.Status.Message.Parts[0].Text, verb)
			on := fmt.Sprintf(`"taskId":%q`, got.ID)
			for code, said := range map[string]string{
				verb:             "waits for a decision",
				"Please " + word: "waits for a decision",
				apitest.CodeReply(t, *other.Status.Message.Parts[0].Text, verb): "no question with the code",
			} {
				e := c.refused(-32602, method, c.params(unique(), text(code), "", on))
				if !strings.Contains(e.Message, said) {
					t.Errorf("%s: %+v %s", code, e, e.Data)
				}
			}
			if now := c.get(got.ID); now.state() != "TASK_STATE_INPUT_REQUIRED" {
				t.Fatalf("%+v", now)
			}
			if verb == "deny" {
				word += " not on a Monday."
			}
			id := unique()
			for range 2 {
				end := c.read(c.ask(method, c.params(id, text(word), "", on)))
				if end.state() != "TASK_STATE_COMPLETED" || end.said("answer") != "It is done." {
					t.Errorf("%+v", end)
				}
			}
			opposite := map[string]string{"allow": "deny", "deny": "allow"}[verb] + " " + strings.Fields(word)[1]
			c.refused(-32000, method, c.params(unique(), text(opposite), "", on))
			var status, reason string
			err := c.Pool.QueryRow(t.Context(),
				`SELECT a.status, coalesce(e.data->>'reason', '') FROM approvals a JOIN events e ON e.turn_id = a.turn_id AND e.kind = 'decision'
				WHERE a.turn_id = $1`, got.ID).Scan(&status, &reason)
			if want := map[string]string{"allow": "allowed ", "deny": "denied not on a Monday."}[verb]; err != nil || status+" "+reason != want {
				t.Errorf("%s: %s %s %v", verb, status, reason, err)
			}
		}
	})
}
