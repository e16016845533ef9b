package a2a_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/vault"
)

// versions runs a test in both versions, on one service.
func versions(t *testing.T, test func(*testing.T, *caller)) {
	t.Parallel()
	s := start(t, nil)
	for _, v := range []string{"1.0", "0.3"} {
		t.Run(v, func(t *testing.T) { test(t, s.speaks(t, v)) })
	}
}

func TestAMessageIsAnswered(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		one := c.say("@say Hello, you.")
		if one.state() != "TASK_STATE_COMPLETED" || one.said("answer") != "Hello, you." || len(one.History) != 1 ||
			*one.History[0].Parts[0].Text != "@say Hello, you." ||
			one.Metadata["usage"] == nil {
			t.Fatalf("%+v", one)
		}
		two := c.say("@say Again.", fmt.Sprintf(`"contextId":%q`, one.ContextID))
		if two.ContextID != one.ContextID || two.ID == one.ID {
			t.Errorf("%+v", two)
		}
		if got := c.get(one.ID); got.said("answer") != "Hello, you." || got.state() != one.state() ||
			got.Status.Timestamp != one.Status.Timestamp {
			t.Errorf("%+v", got)
		}
		raw := c.ask(c.name("GetTask", "tasks/get"), fmt.Sprintf(`{"id":%q,"historyLength":0}`, one.ID))
		if c.read(raw).History != nil || !strings.HasSuffix(one.Status.Timestamp, "Z") {
			t.Errorf("%s", raw)
		}
	})
}

func TestTheSameMessageIsTheSameTask(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		id := unique()
		send := func(conf string) *task {
			return c.read(c.ask(c.name("SendMessage", "message/send"), c.params(id, text("@say Once."), conf)))
		}
		one := send(c.atOnce())
		if two := send(""); two.ID != one.ID || two.said("answer") != "Once." {
			t.Errorf("%+v %+v", one, two)
		}
		frames := c.open(c.name("SendStreamingMessage", "message/stream"), c.params(id, text("@say Once."), "")).rest()
		if frames[0].task.ID != one.ID || heard(frames) != "Once." {
			t.Errorf("%s", outline(frames))
		}
		c.refused(-32602, c.name("SendMessage", "message/send"), c.params(id, text("@say Twice."), ""))
	})
}

func TestWhoDoesNotWaitPolls(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		got := c.read(c.ask(c.name("SendMessage", "message/send"), c.params(unique(), text(held), c.atOnce())))
		if s := got.state(); s != "TASK_STATE_SUBMITTED" && s != "TASK_STATE_WORKING" {
			t.Errorf("%+v", got)
		}
		c.Gate.Await(t)
		if now := c.get(got.ID); now.state() != "TASK_STATE_WORKING" || len(now.Artifacts) != 0 {
			t.Errorf("%+v", now)
		}
		e := c.refused(-32000, c.name("SendMessage", "message/send"), c.params(unique(), text("@say Me, too."), "",
			fmt.Sprintf(`"contextId":%q`, got.ContextID)))
		if !strings.Contains(string(e.Data), "TURN_IN_PROGRESS") || !strings.Contains(string(e.Data), got.ID) {
			t.Errorf("%s", e.Data)
		}
		rest := c.resume(got.ID, "")
		c.Gate.Leave <- struct{}{}
		if rest := rest.rest(); len(rest) == 0 || heard(rest) != "and after it" {
			t.Errorf("%s: %q", outline(rest), heard(rest))
		}
	})
}

func TestASkillIsCalled(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		doc := "---\nname: weekly-report\ndescription: Reports.\ninterface:\n  inputs:\n    week: {type: integer, required: " +
			"true}\n---\n@say Reported.\n"
		if _, err := c.Skills.Push(t.Context(), c.Workspace.ID, skill.Upload{Document: doc, By: "test"}); err != nil {
			t.Fatal(err)
		}
		method := c.name("SendMessage", "message/send")
		for _, params := range []string{
			c.params(unique(), data(`{"skill":"Weekly_Report","input":{"week":7}}`), ""),
			c.params(unique(), data(`{"week":7}`), "", `"metadata":{"skill":"weekly-report"}`),
			strings.TrimSuffix(c.params(unique(), data(`{"week":7}`), ""), "}") + `,"metadata":{"skill":"weekly-report","other":1}}`,
		} {
			got := c.read(c.ask(method, params))
			if got.state() != "TASK_STATE_COMPLETED" || *got.History[0].Parts[0].Text != "/weekly-report (week)" {
				t.Errorf("%s: %+v", params, got)
			}
		}
		for params, want := range map[string]string{
			c.params(unique(), data(`{"skill":"weekly-repot","input":{}}`), ""):                          "weekly-report",
			c.params(unique(), data(`{"skill":"weekly-report","input":{"week":"x"}}`), ""):               "INVALID_SKILL_INPUT",
			c.params(unique(), text("Do it."), "", `"metadata":{"skill":"weekly-report"}`):               "exactly_one",
			c.params(unique(), text("Do it."), "", `"metadata":{"limits":{"max_turns":0}}`):              "max_turns",
			c.params(unique(), text("Do it."), "", `"metadata":{"multitask_strategy":"wait"}`):           "enqueue",
			c.params(unique(), text("Do it."), "", `"metadata":{"secret_input":["GITHUB_TOKEN"]}`):       "UNKNOWN_SECRET",
			c.params(unique(), text("Do it."), "", `"contextId":"0197a0b4-7c3e-7cc0-8a3a-2f6f0f1b7f10"`): "SESSION_NOT_FOUND",
		} {
			if e := c.refused(-32602, method, params); !strings.Contains(string(e.Data), want) {
				t.Errorf("%s: %+v %s", params, e, e.Data)
			}
		}
	})
}

func TestAnAnswerInASchemaIsData(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		const schema = `"metadata":{"response_schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`
		got := c.say("@structured {\"n\":7}", schema)
		if got.said("result") != `{"n":7}` || got.said("answer") != "" {
			t.Errorf("%+v", got)
		}
		frames := c.stream("@structured {\"n\":7}", schema).rest()
		if outline(frames) != "task:SUBMITTED WORKING result COMPLETED" {
			t.Errorf("%s", outline(frames))
		}
		// A client that does not accept JSON gets the same as text.
		raw := c.ask(c.name("SendMessage", "message/send"), c.params(unique(), text("@structured {\"n\":7}"),
			`{"acceptedOutputModes":["text/plain"]}`, schema))
		var plain struct {
			Task struct{ Artifacts []struct{ Parts []part } }
		}
		if err := json.Unmarshal(raw, &plain); err != nil || c.read(raw).said("result") != `{"n":7}` ||
			c.read(raw).Artifacts[0].Parts[0].Text == nil {
			t.Errorf("%s %v", raw, err)
		}
		c.refused(-32005, c.name("SendMessage", "message/send"), c.params(unique(), text("Hi."), `{"acceptedOutputModes":["image/png"]}`))
	})
}

func TestATurnThatFailsIsAFailedTask(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		got := c.say("@refuse")
		if got.state() != "TASK_STATE_FAILED" || !strings.Contains(string(got.Metadata["error"]), "content_refused") ||
			got.Status.Message == nil {
			t.Errorf("%+v", got)
		}
		frames := c.stream("@refuse").rest()
		last := frames[len(frames)-1]
		if last.state() != "FAILED" || !strings.Contains(string(last.stat.Metadata["error"]), "content_refused") ||
			last.stat.Status.Message == nil {
			t.Errorf("%s", last.text)
		}
		// A later GetTask, or a list, returns the same message under the same id.
		read := c.get(last.stat.TaskID).Status.Message
		told := last.stat.Status.Message
		if read == nil || told == nil || read.MessageID != told.MessageID || *read.Parts[0].Text != *told.Parts[0].Text {
			t.Errorf("%+v, and the stream sent %+v", read, told)
		}
		if c.v == "1.0" {
			if listed := c.list(fmt.Sprintf(`{"contextId":%q}`,
				last.stat.ContextID)).Tasks[0].Status.Message; *listed.Parts[0].Text != *told.Parts[0].Text {
				t.Errorf("%+v", listed)
			}
		}
	})
}

func TestAnApprovalIsAnsweredOnItsTask(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		method := c.name("SendMessage", "message/send")
		for _, decision := range []string{"allow", "deny"} {
			got := c.say(asking + " " + decision)
			if got.state() != "TASK_STATE_INPUT_REQUIRED" || got.Status.Message == nil || len(got.Status.Message.Parts) != 2 {
				t.Fatalf("%+v", got)
			}
			var q struct {
				Kind, Plan string
				Operations []struct{ Tool string }
				ApprovalID string `json:"approval_id"`
				DecideURL  string `json:"decide_url"`
			}
			if err := json.Unmarshal(got.Status.Message.Parts[1].Data, &q); err != nil || q.Kind != "approval" ||
				q.Operations[0].Tool != "touch" || !strings.HasPrefix(q.DecideURL, c.URL+"/api/workspaces/") {
				t.Errorf("%s", got.Status.Message.Parts[1].Data)
			}
			on := fmt.Sprintf(`"taskId":%q`, got.ID)
			c.refused(-32602, method, c.params(unique(), text("yes"), "", on))
			c.refused(-32602, method, c.params(unique(), data(`{"decision":"perhaps"}`), "", on))
			c.refused(-32602, method, c.params(unique(), data(`{"decision":"deny","Decision":"allow"}`), "", on))
			c.refused(-32602, method, c.params(unique(), data(`{"decision":"allow","approval_id":"0197a0b4-7c3e-7cc0-8a3a-2f6f0f1b7f10"}`), "", on))
			c.refused(-32602, method, c.params(unique(), data(`{"decision":"allow"}`), "", on, `"contextId":"0197a0b4-7c3e-7cc0-8a3a-2f6f0f1b7f10"`))
			answer := c.params(unique(), data(fmt.Sprintf(`{"decision":%q}`, decision)), "", on, fmt.Sprintf(`"contextId":%q`, got.ContextID))
			end := c.read(c.ask(method, answer))
			if end.ID != got.ID || end.state() != "TASK_STATE_COMPLETED" || !strings.HasSuffix(end.said("answer"), "It is done. "+decision) {
				t.Errorf("%+v", end)
			}
			if again := c.read(c.ask(method, answer)); again.ID != got.ID {
				t.Errorf("%+v", again)
			}
			opposite := map[string]string{"allow": "deny", "deny": "allow"}[decision]
			e := c.refused(-32000, method, c.params(unique(), data(fmt.Sprintf(`{"decision":%q,"approval_id":%q}`, opposite, q.ApprovalID)), "", on))
			if !strings.Contains(string(e.Data), "APPROVAL_ALREADY_DECIDED") {
				t.Errorf("%s", e.Data)
			}
			c.refused(-32004, method, c.params(unique(), text("More."), "", on))
		}
	})
}

// TestAnAnswerIsForOneQuestion checks that an answer that arrives twice does not answer the next
// question as well.
func TestAnAnswerIsForOneQuestion(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		method := c.name("SendMessage", "message/send")
		got := c.say("@call touch {\"n\":1}\n@call touch {\"n\":2}\n@say Both.")
		answer := c.params(unique(), data(`{"decision":"allow"}`), "", fmt.Sprintf(`"taskId":%q`, got.ID))
		first := c.read(c.ask(method, answer))
		second := c.read(c.ask(method, answer))
		for _, now := range []*task{first, second} {
			if now.state() != "TASK_STATE_INPUT_REQUIRED" || !strings.Contains(string(now.Status.Message.Parts[1].Data), `"n":2`) {
				t.Errorf("%+v", now)
			}
		}
	})
}

func TestASecretIsNotTaken(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		register(t, c, "GITHUB_TOKEN")
		got := c.say("@call request_secret {\"key_name\":\"GITHUB_TOKEN\",\"reason\":\"To read.\"}\n@say Thanks.")
		if got.state() != "TASK_STATE_INPUT_REQUIRED" {
			t.Fatalf("%+v", got)
		}
		var q struct {
			Kind      string
			SecretURL string `json:"secret_url"`
		}
		if err := json.Unmarshal(got.Status.Message.Parts[1].Data, &q); err != nil || q.Kind != "secret" || !strings.HasPrefix(q.SecretURL,
			c.URL+"/api/v1/workspaces/") ||
			!strings.Contains(*got.Status.Message.Parts[0].Text, q.SecretURL) {
			t.Errorf("%s", got.Status.Message.Parts[1].Data)
		}
		for _, parts := range []string{data(`{"action":"provide","value":"hush-hush-hush"}`), data(`{"decision":"allow"}`),
			text("hush-hush-hush")} {
			e := c.refused(-32004, c.name("SendMessage", "message/send"), c.params(unique(), parts, "", fmt.Sprintf(`"taskId":%q`, got.ID)))
			if strings.Contains(e.Message+string(e.Data), "hush") || !strings.Contains(e.Message, "secret_url") {
				t.Errorf("%+v", e)
			}
		}
	})
}

func TestFilesComeAndGo(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		method := c.name("SendMessage", "message/send")
		e := c.refused(-32005, method, c.params(unique(), c.name(`[{"text":"Read."},{"raw":"aGk=","filename":"a.txt"}]`,
			`[{"kind":"text","text":"Read."},{"kind":"file","file":{"bytes":"aGk=","name":"a.txt"}}]`), ""))
		if !strings.Contains(e.Message, "/files") {
			t.Errorf("%+v", e)
		}
		id := upload(t, c)
		got := c.read(c.ask(method, c.params(unique(),
			fmt.Sprintf(
				`[{"kind":"text","text":"@call attach_file {\"filename\":\"b.txt\",\"content\":\"out\"}\n@say Here."},{"kind":"data",`+
					`"data":{"file_id":%q}}]`, id), "")))
		if got.state() != "TASK_STATE_COMPLETED" || got.Metadata["rejected_attachments"] != nil {
			t.Fatalf("%+v", got)
		}
		file := got.Artifacts[len(got.Artifacts)-1]
		if url := file.Parts[0].URL + file.Parts[0].File.URI; file.ArtifactID != "files" || !strings.HasPrefix(url, c.URL+"/") {
			t.Errorf("%+v", file)
		}
	})
}

// register registers a credential without a value.
func register(t testing.TB, c *caller, name string) {
	t.Helper()
	if _, err := c.Vault.Register(t.Context(), c.Workspace.ID, vault.Registration{Name: name, Hosts: []string{"api.example.com"}},
		"test"); err != nil {
		t.Fatal(err)
	}
}

// upload uploads a file and returns its id.
func upload(t testing.TB, c *caller) string {
	t.Helper()
	ticket, err := c.Files.Create(t.Context(), filestore.Request{Workspace: c.Workspace.ID, Key: "test", Filename: "a.txt",
		MIME: "text/plain", Size: new(int64(2))})
	if err != nil {
		t.Fatal(err)
	}
	path, query, _ := strings.Cut(ticket.Upload.URL, "?")
	if _, err := c.Files.Upload(t.Context(), path, query, 2, strings.NewReader("hi")); err != nil {
		t.Fatal(err)
	}
	return ticket.FileID.String()
}
