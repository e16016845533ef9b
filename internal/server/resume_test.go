package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/turn"
)

const (
	gated    = "@call gate {}\n@say the end"
	approves = `"status":"resolved","payload":{"approved":true}`
	gives    = `"status":"cancelled"`
)

// conversation makes a run with a history that ends with a message of the user, and with
// answers to interrupts.
func conversation(thread, run, last string, answers ...string) call {
	return call{path: runs, body: fmt.Sprintf(`{"threadId":%q,"runId":%q,"messages":[{"id":"0","role":"assistant","content":"Hello."},{"id":"1","role":"user","content":%s}],"resume":[%s]}`,
		thread, run, quote(last), strings.Join(answers, ","))}
}

func entry(interrupt, rest string) string {
	return fmt.Sprintf(`{"interruptId":%q,%s}`, interrupt, rest)
}

// refused is a run that came to nothing.
func refused(t *testing.T, list []string) (code, message string) {
	t.Helper()
	if got := types(t, list); got != "RUN_STARTED RUN_ERROR" {
		t.Fatalf("%v", list)
	}
	return field(list, "code"), field(list, "message")
}

// A question that still waits is asked again at once, however somebody comes to it.
func TestOpenInterruptIsAskedAgain(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	s.declare(t, "API_TOKEN")
	id, _ := interruptIn(t, s.stream(t, runOf("t", "r", "@call request_secret {\"key_name\":\"API_TOKEN\",\"reason\":\"x\"}\n@say the end")))
	for range 2 {
		list := s.stream(t, resumed("t", id, `"status":"resolved"`))
		if again, reason := interruptIn(t, list); types(t, list) != "RUN_STARTED RUN_FINISHED" || again != id || reason != "input_required" {
			t.Errorf("resolved too early: %v", list)
		}
	}
	for _, c := range []string{`{"threadId":"t","runId":"a","messages":[]}`, `{"threadId":"t","runId":"b","messages":[{"role":"assistant","content":"x"}]}`, `{"threadId":"t","runId":"c","messages":[],"resume":[]}`} {
		if again, _ := interruptIn(t, s.stream(t, call{path: runs, body: c})); again != id {
			t.Errorf("%s: %s", c, again)
		}
	}
	for _, payload := range []string{`{"approved":true}`, `{"approved":false}`} {
		if code, message := refused(t, s.stream(t, resumed("t", id, `"status":"resolved","payload":`+payload))); code != "INVALID_REQUEST" || !strings.Contains(message, "secret_url") {
			t.Errorf("%s for a secret: %s %s", payload, code, message)
		}
	}
	if _, err := s.Turns.Decide(t.Context(), s.Workspace.ID, turn.Answer{Approval: uuid.MustParse(id), Outcome: event.Provided, Value: vault.NewValue([]byte("hunter2-hunter2"))}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := types(t, s.stream(t, resumed("t", id, `"status":"resolved"`))); got != "RUN_STARTED TOOL_CALL_RESULT "+message0+" RUN_FINISHED" {
			t.Errorf("resolved: %s", got)
		}
	}
	late := s.stream(t, resumed("t", id, gives))
	if got := types(t, late); got != "RUN_STARTED CUSTOM TOOL_CALL_RESULT "+message0+" RUN_FINISHED" || !strings.Contains(late[1], `"status":"provided"`) {
		t.Errorf("given up after the value came: %v", late)
	}
}

// What contradicts is an error, and then nothing at all was decided.
func TestContradictingAnswers(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	id, _ := interruptIn(t, s.stream(t, runOf("t", "r", gated)))
	before := s.state(t)
	if r := s.get(t, conversation("t", "r2", gated, entry(id, approves), entry(id, gives))); r.status != 400 || r.code != "INVALID_REQUEST" || !strings.Contains(r.text, "answered twice") {
		t.Errorf("one interrupt twice: %d %s", r.status, r.text)
	}
	if code, _ := refused(t, s.stream(t, conversation("t", "r3", gated, entry(id, approves), entry(uuid.NewString(), approves)))); code != "APPROVAL_NOT_FOUND" {
		t.Errorf("an unknown one behind: %s", code)
	}
	for name, answer := range map[string]string{
		"resume/0/payload/approved must be a boolean": `"status":"resolved","payload":{"approved":"yes"}`,
		"resume/0/payload must be an object":          `"status":"resolved","payload":[true]`,
		"cannot be edited":                            `"status":"resolved","payload":{"approved":true,"editedArgs":{}}`,
		"comes only with approved":                    `"status":"resolved","payload":{"approved":false,"pattern":"gate *"}`,
		"resume/0/status can be resolved, cancelled":  `"status":"denied"`,
	} {
		if r := s.get(t, resumed("t", id, answer)); r.status != 400 || !strings.Contains(r.text, name) {
			t.Errorf("%s: %d %s", answer, r.status, r.text)
		}
	}
	code, message := refused(t, s.stream(t, resumed("t", id, `"status":"resolved","payload":{"approved":true,"pattern":"nothing *"}`)))
	if code != "INVALID_ALLOWLIST_PATTERN" || strings.Contains(message, "allowlist_pattern") {
		t.Errorf("a pattern: %s %s", code, message)
	}
	if after := s.state(t); after != before {
		t.Errorf("%s became %s", before, after)
	}
	s.Gate.Leave <- struct{}{}
	s.stream(t, resumed("t", id, approves))
	if code, _ := refused(t, s.stream(t, resumed("t", id, `"status":"resolved","payload":{"approved":false}`))); code != "APPROVAL_ALREADY_DECIDED" {
		t.Errorf("refused after it was allowed: %s", code)
	}
}

// Who gives up what somebody else has answered goes on with the thread, and hears of the answer.
func TestInterruptIsGivenUpTooLate(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	id, _ := interruptIn(t, s.stream(t, runOf("t", "r", gated)))
	if _, err := s.Turns.Decide(t.Context(), s.Workspace.ID, turn.Answer{Approval: uuid.MustParse(id), Outcome: event.Allowed}); err != nil {
		t.Fatal(err)
	}
	s.Gate.Await(t)
	// A message in its place ends nothing that was allowed: it is answered behind that.
	res := s.do(t, conversation("t", "r2", "count to 3", entry(id, gives)))
	s.Gate.Leave <- struct{}{}
	list, ok := frames(t, res)
	if got := types(t, list); !ok || got != "RUN_STARTED CUSTOM TOOL_CALL_RESULT "+message0+" "+message0+" RUN_FINISHED" ||
		!strings.HasPrefix(list[1], `{"type":"CUSTOM","name":"notice","value":{"message":"This interrupt was answered before: allowed.`) || !strings.HasSuffix(list[1], `"interruptId":"`+id+`","status":"allowed"}}`) {
		t.Errorf("%v", list)
	}
	if got := types(t, s.stream(t, resumed("t", id, gives))); got != "RUN_STARTED CUSTOM TOOL_CALL_RESULT "+message0+" RUN_FINISHED" {
		t.Errorf("when all is over: %s", got)
	}
}

// Beside an answer to an old question a message finds the thread as any other does.
func TestMessageBesideAnOldAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	id, _ := interruptIn(t, s.stream(t, runOf("t", "r", gated)))
	s.Gate.Leave <- struct{}{}
	s.stream(t, resumed("t", id, approves))
	const second = "@say two\n" + gated
	other, _ := interruptIn(t, s.stream(t, runOf("t", "r2", second)))
	before := s.state(t)
	if code, message := refused(t, s.stream(t, conversation("t", "r3", "count to 3", entry(id, approves)))); code != "TURN_IN_PROGRESS" || !strings.Contains(message, other) {
		t.Errorf("%s %s", code, message)
	}
	if got := types(t, s.stream(t, conversation("t", "r4", second, entry(id, approves)))); got != "RUN_STARTED TOOL_CALL_RESULT "+message0+" RUN_FINISHED" {
		t.Errorf("the message that is answered now: %s", got)
	}
	if after := s.state(t); after != before {
		t.Errorf("%s became %s", before, after)
	}
	s.stream(t, resumed("t", other, gives))
	if got := types(t, s.stream(t, conversation("t", "r5", "count to 3", entry(id, approves)))); got != "RUN_STARTED TOOL_CALL_RESULT "+message0+" "+message0+" RUN_FINISHED" {
		t.Errorf("nothing is in progress: %s", got)
	}
}

// A client sends the whole conversation along. The message whose turn has asked is not sent
// anew by that, and one that is new is not lost.
func TestMessageBesideAResume(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	id, _ := interruptIn(t, s.stream(t, runOf("t", "r", gated)))
	before := s.state(t)
	if code, message := refused(t, s.stream(t, conversation("t", "r2", " ", entry(id, approves)))); code != "INVALID_REQUEST" || !strings.Contains(message, "has no text") {
		t.Errorf("a new message that is none: %s %s", code, message)
	}
	list := s.stream(t, runOf("t", "r3", "and what is 2+3?"))
	if code, message := refused(t, list); code != "TURN_IN_PROGRESS" || !strings.Contains(message, id) || !strings.Contains(list[1], "cancel_url") {
		t.Errorf("a new message alone: %v", list)
	}
	if after := s.state(t); after != before {
		t.Errorf("%s became %s", before, after)
	}
	s.Gate.Leave <- struct{}{}
	if got := types(t, s.stream(t, conversation("t", "r", gated, entry(id, approves)))); got != "RUN_STARTED TOOL_CALL_RESULT "+message0+" RUN_FINISHED" {
		t.Errorf("the message that was answered: %s", got)
	}
	if n := s.messages(t); n != 1 {
		t.Errorf("%d messages", n)
	}

	id, _ = interruptIn(t, s.stream(t, runOf("t", "r4", gated)))
	for range 2 { // and the run that is sent again is the same run
		if list := s.stream(t, conversation("t", "r5", "count to 3", entry(id, gives))); types(t, list) != "RUN_STARTED "+message0+" RUN_FINISHED" {
			t.Errorf("given up for a new message: %v", list)
		}
	}
	if n := s.messages(t); n != 3 {
		t.Errorf("%d messages", n)
	}
	var status string
	if err := s.Pool.QueryRow(t.Context(), "SELECT status FROM approvals WHERE id = $1", id).Scan(&status); err != nil || status != "canceled" {
		t.Errorf("what was given up is %s, %v", status, err)
	}

	id, _ = interruptIn(t, s.stream(t, runOf("t", "r6", gated)))
	s.Gate.Leave <- struct{}{}
	for range 2 {
		list := s.stream(t, conversation("t", "r7", "count to 4", entry(id, approves)))
		if got := types(t, list); got != "RUN_STARTED TOOL_CALL_RESULT "+message0+" "+message0+" RUN_FINISHED" || len(usage(t, list)) != 2 {
			t.Errorf("a new message behind an approval: %v", list)
		}
	}
	if n := s.messages(t); n != 5 {
		t.Errorf("%d messages", n)
	}
}

// What is given up is the turn that has asked, and no other.
func TestMessageInPlaceOfAnOldAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	id, _ := interruptIn(t, s.stream(t, runOf("t", "r", gated)))
	s.stream(t, resumed("t", id, gives))
	other, _ := interruptIn(t, s.stream(t, runOf("t", "r2", gated)))
	if code, message := refused(t, s.stream(t, conversation("t", "r3", "count to 3", entry(id, gives)))); code != "TURN_IN_PROGRESS" || !strings.Contains(message, other) {
		t.Errorf("%s %s", code, message)
	}
	s.stream(t, resumed("t", other, gives))
	if got := types(t, s.stream(t, conversation("t", "r4", "count to 3", entry(id, gives)))); got != "RUN_STARTED "+message0+" RUN_FINISHED" {
		t.Errorf("nothing is in progress: %s", got)
	}
}

// usage is what a run has used, by its turns.
func usage(t *testing.T, list []string) []any {
	t.Helper()
	var f struct{ Usage []any }
	if err := json.Unmarshal([]byte(list[len(list)-1]), &f); err != nil {
		t.Fatal(err)
	}
	return f.Usage
}

// A turn that fails is not the end of a run that goes on to another.
func TestMessageBehindAFailure(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	id, _ := interruptIn(t, s.stream(t, runOf("t", "r", "@call gate {}\n@error model_error")))
	s.Gate.Leave <- struct{}{}
	list := s.stream(t, conversation("t", "r2", "count to 4", entry(id, approves)))
	if got := types(t, list); got != "RUN_STARTED TOOL_CALL_RESULT CUSTOM "+message0+" RUN_FINISHED" || !strings.Contains(strings.Join(list, ""), `"name":"error","value":{"code":"model_error"`) {
		t.Errorf("%v", list)
	}
}

// messages is how many the user has sent.
func (s *service) messages(t *testing.T) (n int) {
	t.Helper()
	if err := s.Pool.QueryRow(t.Context(), "SELECT count(*) FROM messages WHERE role = 'user'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Of a skill's turn nobody can say whether a text is its message: the answer says so.
func TestMessageBesideAResumeOfASkill(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	if _, err := s.Skills.Push(t.Context(), s.Workspace.ID, skill.Upload{Document: "---\nname: gated\ndescription: Waits at a gate.\n---\n" + gated + "\n"}); err != nil {
		t.Fatal(err)
	}
	id, _ := interruptIn(t, s.stream(t, call{path: runs, body: `{"threadId":"t","runId":"r","forwardedProps":{"skill":"gated"},"messages":[{"role":"user","content":"x"}]}`}))
	s.Gate.Leave <- struct{}{}
	res := s.do(t, conversation("t", "r2", "x", entry(id, approves)))
	if list, ok := frames(t, res); !ok || !strings.Contains(types(t, list), "TOOL_CALL_RESULT") || res.Header.Get("X-Parley-Ignored") != "messages" {
		t.Errorf("%v %v", res.Header, list)
	}
}

// A text beside a skill is its input; beside an input it means nothing, and the answer says so.
func TestTextBesideASkill(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	if _, err := s.Skills.Push(t.Context(), s.Workspace.ID, skill.Upload{Document: "---\nname: free\ndescription: Takes anything.\n---\n@say done\n"}); err != nil {
		t.Fatal(err)
	}
	named := func() (label string) {
		if err := s.Pool.QueryRow(t.Context(), "SELECT label FROM messages WHERE role = 'user' ORDER BY id DESC LIMIT 1").Scan(&label); err != nil {
			t.Fatal(err)
		}
		return label
	}
	for i, c := range []struct{ text, more, want, ignored string }{
		{"Rome", "", "message", ""},
		{`{\"to\":\"Paris\"}`, "", "to", ""},
		{"Rome", `,"input":{"from":"Oslo"}`, "from", "messages"},
	} {
		ext := `"skill":"free"` + c.more
		for _, call := range []call{
			{path: chats, body: fmt.Sprintf(`{"id":"c%d",%s,"messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"%s"}]}]}`, i, ext, c.text)},
			{path: runs, body: fmt.Sprintf(`{"threadId":"t%d","runId":"r","forwardedProps":{%s},"messages":[{"id":"m","role":"user","content":"%s"}]}`, i, ext, c.text)},
		} {
			res := s.do(t, call)
			if list, ok := frames(t, res); !ok || res.Header.Get("X-Parley-Ignored") != c.ignored {
				t.Errorf("%s: %q %v", call.body, res.Header.Get("X-Parley-Ignored"), list)
			}
			if got := named(); !strings.Contains(got, c.want) {
				t.Errorf("%s: %s", call.body, got)
			}
		}
	}
}

// An error names what the client sent, and every mistake once.
func TestRunsAreRefusedInTheirWords(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	s.stream(t, runOf("t", "r", "count to 2"))
	if got := types(t, s.stream(t, runOf("another thread", "r", "count to 2"))); got != "RUN_STARTED "+message0+" RUN_FINISHED" {
		t.Errorf("the runId of another thread: %s", got)
	}
	for name, c := range map[string]struct {
		call
		param string
	}{
		"no thread":    {call{body: `{"runId":"r","messages":[{"role":"user","content":"x"}]}`}, "threadId"},
		"a number":     {call{body: `{"threadId":7,"runId":"r","messages":[{"role":"user","content":"x"}]}`}, "threadId"},
		"a long name":  {runOf(strings.Repeat("x", 256), "r", "x"), "threadId"},
		"many bytes":   {runOf(strings.Repeat("ü", 200), "r", "x"), "threadId"},
		"a long text":  {runOf("t", "r9", strings.Repeat("x", 200_001)), "messages/0/content"},
		"an extension": {call{body: `{"threadId":"t","runId":"r9","messages":[{"role":"user","content":"x"}],"forwardedProps":{"attachments":7}}`}, "forwardedProps/attachments"},
	} {
		c.path = runs
		r := s.get(t, c.call)
		told, _ := r.body["error"].(map[string]any)
		if list, _ := told["violations"].([]any); r.status != 400 || len(list) != 1 || told["param"] != c.param || !strings.HasPrefix(fmt.Sprint(told["message"]), c.param) {
			t.Errorf("%s: %d %s", name, r.status, r.text)
		}
	}
	res := s.do(t, call{path: runs, body: `{"threadId":"t","runId":"r8","parentRunId":"r","protocolVersion":"1.0","state":{"a":1},"tools":[{}],"context":[],"forwardedProps":{"respons_schema":{"type":"object"},"tab":true},"model":"x","seed":7,"messages":[{"role":"system","content":"s"},{"role":"user","content":"count to 2"}]}`})
	if got := res.Header.Get("X-Parley-Ignored"); res.StatusCode != http.StatusOK || got != "model, seed, state, tools, system messages, forwardedProps/respons_schema, forwardedProps/tab" {
		t.Errorf("ignored: %d %q", res.StatusCode, got)
	}
}

// A canceled turn has an outcome of its own since the protocol has versions; to clients from
// before it is an error.
func TestCanceledRun(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	for version, want := range map[string]string{`"protocolVersion":"1.0",`: "RUN_FINISHED", "": "RUN_ERROR"} {
		res := s.do(t, call{path: runs, body: `{"threadId":"t` + want + `","runId":"r",` + version + `"messages":[{"role":"user","content":` + quote(held) + `}]}`})
		s.Gate.Await(t)
		id, ok, err := s.Sessions.ByCaller(t.Context(), s.Workspace.ID, "t"+want)
		if err != nil || !ok {
			t.Fatal(err, ok)
		}
		if _, err := s.Turns.Cancel(t.Context(), s.Workspace.ID, id); err != nil {
			t.Fatal(err)
		}
		list, ok := frames(t, res)
		if last := list[len(list)-1]; !ok || !strings.HasSuffix(types(t, list), want) || !strings.Contains(last, `"cancelled"`) && !strings.Contains(last, `"canceled"`) {
			t.Errorf("%s: %v", version, list)
		}
	}
}
