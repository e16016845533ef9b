package agui_test

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
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/turn"
)

const gives = `"status":"cancelled"`

// conversation returns a run with a history that ends with a message of the user, and with answers
// to interrupts.
func conversation(thread, run, last string, answers ...string) apitest.Call {
	return apitest.Call{Path: apitest.RunsPath, Body: fmt.Sprintf(
		`{"threadId":%q,"runId":%q,"messages":[{"id":"0","role":"assistant","content":"Hello."},{"id":"1","role":"user","content":%s}],`+
			`"resume":[%s]}`,
		thread, run, apitest.Quote(last), strings.Join(answers, ","))}
}

func entry(interrupt, rest string) string {
	return fmt.Sprintf(`{"interruptId":%q,%s}`, interrupt, rest)
}

// TestOpenInterruptIsAskedAgain checks that every kind of request gets a pending question again at
// once.
func TestOpenInterruptIsAskedAgain(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	s.Declare(t, "API_TOKEN")
	id, _ := apitest.FrameInterrupt(t, s.Stream(t,
		apitest.AGUIRun("t", "r", "@call request_secret {\"key_name\":\"API_TOKEN\",\"reason\":\"x\"}\n@say the end")))
	for range 2 {
		list := s.Stream(t, apitest.AGUIResume("t", id, `"status":"resolved"`))
		if again, reason := apitest.FrameInterrupt(t, list); apitest.FrameTypes(t, list) != "RUN_STARTED RUN_FINISHED" || again != id ||
			reason != "input_required" {
			t.Errorf("resolved too early: %v", list)
		}
	}
	for _, c := range []string{`{"threadId":"t","runId":"a","messages":[]}`,
		`{"threadId":"t","runId":"b","messages":[{"role":"assistant","content":"x"}]}`,
		`{"threadId":"t","runId":"c","messages":[],"resume":[]}`} {
		if again, _ := apitest.FrameInterrupt(t, s.Stream(t, apitest.Call{Path: apitest.RunsPath, Body: c})); again != id {
			t.Errorf("%s: %s", c, again)
		}
	}
	for _, payload := range []string{`{"approved":true}`, `{"approved":false}`} {
		if code, message := apitest.FrameRefusal(t,
			s.Stream(t, apitest.AGUIResume("t", id, `"status":"resolved","payload":`+payload))); code != "INVALID_REQUEST" ||
			!strings.Contains(message, "secret_url") {
			t.Errorf("%s for a secret: %s %s", payload, code, message)
		}
	}
	if _, err := s.Turns.Decide(t.Context(), s.Workspace.ID, turn.Answer{Approval: uuid.MustParse(id), Outcome: event.Provided,
		Value: vault.NewValue([]byte("hunter2-hunter2"))}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := apitest.FrameTypes(t, s.Stream(t,
			apitest.AGUIResume("t", id, `"status":"resolved"`))); got != "RUN_STARTED TOOL_CALL_RESULT "+message0+" RUN_FINISHED" {
			t.Errorf("resolved: %s", got)
		}
	}
	late := s.Stream(t, apitest.AGUIResume("t", id, gives))
	if got := apitest.FrameTypes(t, late); got != "RUN_STARTED CUSTOM TOOL_CALL_RESULT "+message0+" RUN_FINISHED" ||
		!strings.Contains(late[1], `"status":"provided"`) {
		t.Errorf("given up after the value was provided: %v", late)
	}
}

// TestContradictingAnswers checks that contradicting answers are an error and decide nothing.
func TestContradictingAnswers(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	id, _ := apitest.FrameInterrupt(t, s.Stream(t, apitest.AGUIRun("t", "r", apitest.GatedCommand)))
	before := s.State(t)
	if r := s.Get(t, conversation("t", "r2", apitest.GatedCommand, entry(id, apitest.AGUIApproves), entry(id, gives))); r.Status != 400 ||
		r.Code != "INVALID_REQUEST" || !strings.Contains(r.Text, "answered twice") {
		t.Errorf("one interrupt twice: %d %s", r.Status, r.Text)
	}
	if code, _ := apitest.FrameRefusal(t, s.Stream(t, conversation("t", "r3", apitest.GatedCommand, entry(id, apitest.AGUIApproves),
		entry(uuid.NewString(), apitest.AGUIApproves)))); code != "APPROVAL_NOT_FOUND" {
		t.Errorf("an unknown one after it: %s", code)
	}
	for name, answer := range map[string]string{
		"resume/0/payload/approved must be a boolean":        `"status":"resolved","payload":{"approved":"yes"}`,
		"resume/0/payload must be an object":                 `"status":"resolved","payload":[true]`,
		"cannot be edited":                                   `"status":"resolved","payload":{"approved":true,"editedArgs":{}}`,
		"comes only with approved":                           `"status":"resolved","payload":{"approved":false,"pattern":"gate *"}`,
		"resume/0/status must be one of resolved, cancelled": `"status":"denied"`,
	} {
		if r := s.Get(t, apitest.AGUIResume("t", id, answer)); r.Status != 400 || !strings.Contains(r.Text, name) {
			t.Errorf("%s: %d %s", answer, r.Status, r.Text)
		}
	}
	code, message := apitest.FrameRefusal(t, s.Stream(t,
		apitest.AGUIResume("t", id, `"status":"resolved","payload":{"approved":true,"pattern":"nothing *"}`)))
	if code != "INVALID_ALLOWLIST_PATTERN" || strings.Contains(message, "allowlist_pattern") {
		t.Errorf("a pattern: %s %s", code, message)
	}
	if after := s.State(t); after != before {
		t.Errorf("%s became %s", before, after)
	}
	s.Gate.Leave <- struct{}{}
	s.Stream(t, apitest.AGUIResume("t", id, apitest.AGUIApproves))
	if code, _ := apitest.FrameRefusal(t, s.Stream(t,
		apitest.AGUIResume("t", id, `"status":"resolved","payload":{"approved":false}`))); code != "APPROVAL_ALREADY_DECIDED" {
		t.Errorf("refused after it was allowed: %s", code)
	}
}

// TestInterruptIsGivenUpTooLate checks that a client that gives up an interrupt that was answered
// elsewhere continues with the thread and gets a notice of the answer.
func TestInterruptIsGivenUpTooLate(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	id, _ := apitest.FrameInterrupt(t, s.Stream(t, apitest.AGUIRun("t", "r", apitest.GatedCommand)))
	if _, err := s.Turns.Decide(t.Context(), s.Workspace.ID, turn.Answer{Approval: uuid.MustParse(id), Outcome: event.Allowed}); err != nil {
		t.Fatal(err)
	}
	s.Gate.Await(t)
	// A message in its place does not cancel an allowed call: it is answered after that.
	res := s.Do(t, conversation("t", "r2", "count to 3", entry(id, gives)))
	s.Gate.Leave <- struct{}{}
	list, ok := apitest.Frames(t, res)
	if got := apitest.FrameTypes(t, list); !ok || got != "RUN_STARTED CUSTOM TOOL_CALL_RESULT "+message0+" "+message0+" RUN_FINISHED" ||
		!strings.HasPrefix(list[1], `{"type":"CUSTOM","name":"notice","value":{"message":"This interrupt was answered before: allowed.`) ||
		!strings.HasSuffix(list[1], `"interruptId":"`+id+`","status":"allowed"}}`) {
		t.Errorf("%v", list)
	}
	if got := apitest.FrameTypes(t, s.Stream(t, apitest.AGUIResume("t", id, gives))); got != "RUN_STARTED CUSTOM TOOL_CALL_RESULT "+
		message0+" RUN_FINISHED" {
		t.Errorf("after the end: %s", got)
	}
}

// TestMessageBesideAnOldAnswer checks that a message beside an answer to an old question is handled
// like any other.
func TestMessageBesideAnOldAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	id, _ := apitest.FrameInterrupt(t, s.Stream(t, apitest.AGUIRun("t", "r", apitest.GatedCommand)))
	s.Gate.Leave <- struct{}{}
	s.Stream(t, apitest.AGUIResume("t", id, apitest.AGUIApproves))
	const second = "@say two\n" + apitest.GatedCommand
	other, _ := apitest.FrameInterrupt(t, s.Stream(t, apitest.AGUIRun("t", "r2", second)))
	before := s.State(t)
	if code, message := apitest.FrameRefusal(t, s.Stream(t, conversation("t", "r3", "count to 3",
		entry(id, apitest.AGUIApproves)))); code != "TURN_IN_PROGRESS" || !strings.Contains(message, other) {
		t.Errorf("%s %s", code, message)
	}
	if got := apitest.FrameTypes(t, s.Stream(t, conversation("t", "r4", second,
		entry(id, apitest.AGUIApproves)))); got != "RUN_STARTED TOOL_CALL_RESULT "+message0+" RUN_FINISHED" {
		t.Errorf("the message that is answered now: %s", got)
	}
	if after := s.State(t); after != before {
		t.Errorf("%s became %s", before, after)
	}
	s.Stream(t, apitest.AGUIResume("t", other, gives))
	if got := apitest.FrameTypes(t, s.Stream(t, conversation("t", "r5", "count to 3",
		entry(id, apitest.AGUIApproves)))); got != "RUN_STARTED TOOL_CALL_RESULT "+message0+" "+message0+" RUN_FINISHED" {
		t.Errorf("nothing is in progress: %s", got)
	}
}

// TestMessageBesideAResume checks clients that send the whole conversation: the message of the turn
// that asked is not sent again by that, and a new one is not lost.
func TestMessageBesideAResume(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	id, _ := apitest.FrameInterrupt(t, s.Stream(t, apitest.AGUIRun("t", "r", apitest.GatedCommand)))
	before := s.State(t)
	if code, message := apitest.FrameRefusal(t, s.Stream(t, conversation("t", "r2", " ",
		entry(id, apitest.AGUIApproves)))); code != "INVALID_REQUEST" || !strings.Contains(message, "has no text") {
		t.Errorf("a new message that is invalid: %s %s", code, message)
	}
	list := s.Stream(t, apitest.AGUIRun("t", "r3", "and what is 2+3?"))
	if code, message := apitest.FrameRefusal(t, list); code != "TURN_IN_PROGRESS" || !strings.Contains(message, id) ||
		!strings.Contains(list[1], "cancel_url") {
		t.Errorf("a new message alone: %v", list)
	}
	if after := s.State(t); after != before {
		t.Errorf("%s became %s", before, after)
	}
	s.Gate.Leave <- struct{}{}
	if got := apitest.FrameTypes(t, s.Stream(t, conversation("t", "r", apitest.GatedCommand,
		entry(id, apitest.AGUIApproves)))); got != "RUN_STARTED TOOL_CALL_RESULT "+message0+" RUN_FINISHED" {
		t.Errorf("the message that was answered: %s", got)
	}
	if n := s.CountMessages(t); n != 1 {
		t.Errorf("%d messages", n)
	}

	id, _ = apitest.FrameInterrupt(t, s.Stream(t, apitest.AGUIRun("t", "r4", apitest.GatedCommand)))
	for range 2 { // a run that is sent again is the same run
		if list := s.Stream(t, conversation("t", "r5", "count to 3", entry(id, gives))); apitest.FrameTypes(t, list) != "RUN_STARTED "+
			message0+" RUN_FINISHED" {
			t.Errorf("given up for a new message: %v", list)
		}
	}
	if n := s.CountMessages(t); n != 3 {
		t.Errorf("%d messages", n)
	}
	var status string
	if err := s.Pool.QueryRow(t.Context(), "SELECT status FROM approvals WHERE id = $1", id).Scan(&status); err != nil ||
		status != "canceled" {
		t.Errorf("the abandoned approval is %s, %v", status, err)
	}

	id, _ = apitest.FrameInterrupt(t, s.Stream(t, apitest.AGUIRun("t", "r6", apitest.GatedCommand)))
	s.Gate.Leave <- struct{}{}
	for range 2 {
		list := s.Stream(t, conversation("t", "r7", "count to 4", entry(id, apitest.AGUIApproves)))
		if got := apitest.FrameTypes(t, list); got != "RUN_STARTED TOOL_CALL_RESULT "+message0+" "+message0+" RUN_FINISHED" ||
			len(usage(t, list)) != 2 {
			t.Errorf("a new message after an approval: %v", list)
		}
	}
	if n := s.CountMessages(t); n != 5 {
		t.Errorf("%d messages", n)
	}
}

// TestMessageInPlaceOfAnOldAnswer checks that giving up an interrupt cancels only the turn that
// asked.
func TestMessageInPlaceOfAnOldAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	id, _ := apitest.FrameInterrupt(t, s.Stream(t, apitest.AGUIRun("t", "r", apitest.GatedCommand)))
	s.Stream(t, apitest.AGUIResume("t", id, gives))
	other, _ := apitest.FrameInterrupt(t, s.Stream(t, apitest.AGUIRun("t", "r2", apitest.GatedCommand)))
	if code, message := apitest.FrameRefusal(t, s.Stream(t, conversation("t", "r3", "count to 3",
		entry(id, gives)))); code != "TURN_IN_PROGRESS" || !strings.Contains(message, other) {
		t.Errorf("%s %s", code, message)
	}
	s.Stream(t, apitest.AGUIResume("t", other, gives))
	if got := apitest.FrameTypes(t, s.Stream(t, conversation("t", "r4", "count to 3", entry(id, gives)))); got != "RUN_STARTED "+message0+
		" RUN_FINISHED" {
		t.Errorf("nothing is in progress: %s", got)
	}
}

// usage returns the usage of a run, by its turns.
func usage(t *testing.T, list []string) []any {
	t.Helper()
	var f struct{ Usage []any }
	if err := json.Unmarshal([]byte(list[len(list)-1]), &f); err != nil {
		t.Fatal(err)
	}
	return f.Usage
}

// TestMessageBehindAFailure checks that a failed turn does not end a run that continues with
// another turn.
func TestMessageBehindAFailure(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	id, _ := apitest.FrameInterrupt(t, s.Stream(t, apitest.AGUIRun("t", "r", "@call gate {}\n@error model_error")))
	s.Gate.Leave <- struct{}{}
	list := s.Stream(t, conversation("t", "r2", "count to 4", entry(id, apitest.AGUIApproves)))
	if got := apitest.FrameTypes(t, list); got != "RUN_STARTED TOOL_CALL_RESULT CUSTOM "+message0+" RUN_FINISHED" ||
		!strings.Contains(strings.Join(list, ""), `"name":"error","value":{"code":"model_error"`) {
		t.Errorf("%v", list)
	}
}

// TestMessageBesideAResumeOfASkill checks a text beside the resume of a skill's turn. The server
// cannot know whether it is the turn's message, so the response reports it as ignored.
func TestMessageBesideAResumeOfASkill(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	if _, err := s.Skills.Push(t.Context(), s.Workspace.ID,
		skill.Upload{Document: "---\nname: gated\ndescription: Waits at a gate.\n---\n" + apitest.GatedCommand + "\n"}); err != nil {
		t.Fatal(err)
	}
	id, _ := apitest.FrameInterrupt(t, s.Stream(t, apitest.Call{Path: apitest.RunsPath,
		Body: `{"threadId":"t","runId":"r","forwardedProps":{"skill":"gated"},"messages":[{"role":"user","content":"x"}]}`}))
	s.Gate.Leave <- struct{}{}
	res := s.Do(t, conversation("t", "r2", "x", entry(id, apitest.AGUIApproves)))
	if list, ok := apitest.Frames(t, res); !ok || !strings.Contains(apitest.FrameTypes(t, list), "TOOL_CALL_RESULT") ||
		res.Header.Get("X-Parley-Ignored") != "messages" {
		t.Errorf("%v %v", res.Header, list)
	}
}

// TestRunsAreRefusedInTheirWords checks that an error names the client's fields, and every mistake
// once.
func TestRunsAreRefusedInTheirWords(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	s.Stream(t, apitest.AGUIRun("t", "r", "count to 2"))
	if got := apitest.FrameTypes(t, s.Stream(t, apitest.AGUIRun("another thread", "r", "count to 2"))); got != "RUN_STARTED "+message0+
		" RUN_FINISHED" {
		t.Errorf("the runId of another thread: %s", got)
	}
	for name, c := range map[string]struct {
		apitest.Call
		message string // its beginning: param, then what is wrong
	}{
		"no thread":   {apitest.Call{Body: `{"runId":"r","messages":[{"role":"user","content":"x"}]}`}, "threadId is missing."},
		"no run":      {apitest.Call{Body: `{"threadId":"t","messages":[{"role":"user","content":"x"}]}`}, "runId is missing."},
		"an empty id": {apitest.AGUIRun("", "r", "x"), "threadId is empty."},
		"a number":    {apitest.Call{Body: `{"threadId":7,"runId":"r","messages":[{"role":"user","content":"x"}]}`}, "threadId"},
		"a long name": {apitest.AGUIRun(strings.Repeat("x", 256), "r", "x"), "threadId"},
		"many bytes":  {apitest.AGUIRun(strings.Repeat("ü", 200), "r", "x"), "threadId"},
		"a long text": {apitest.AGUIRun("t", "r9", strings.Repeat("x", 200_001)), "messages/0/content"},
		"an extension": {
			apitest.Call{
				Body: `{"threadId":"t","runId":"r9","messages":[{"role":"user","content":"x"}],"forwardedProps":{"attachments":7}}`},
			"forwardedProps/attachments"},
	} {
		c.Path = apitest.RunsPath
		r := s.Get(t, c.Call)
		told, _ := r.Body["error"].(map[string]any)
		if list, _ := told["violations"].([]any); r.Status != 400 || len(list) != 1 || told["param"] != strings.Fields(c.message)[0] ||
			!strings.HasPrefix(fmt.Sprint(told["message"]), c.message) {
			t.Errorf("%s: %d %s", name, r.Status, r.Text)
		}
	}
	res := s.Do(t, apitest.Call{Path: apitest.RunsPath,
		Body: `{"threadId":"t","runId":"r8","parentRunId":"r","protocolVersion":"1.0","state":{"a":1},"tools":[{"name":"mine"}],` +
			`"context":[],"forwardedProps":{"respons_schema":{"type":"object"},"tab":true},"model":"x","seed":7,` +
			`"messages":[{"role":"system","content":"s"},{"role":"user","content":"count to 2"}]}`})
	if got := res.Header.Get("X-Parley-Ignored"); res.StatusCode != http.StatusOK ||
		got != "model, seed, state, system messages, forwardedProps/respons_schema, forwardedProps/tab" {
		t.Errorf("ignored: %d %q", res.StatusCode, got)
	}
}

// TestCanceledRun checks the outcome of a canceled turn, which exists since the protocol has
// versions; older clients get an error.
func TestCanceledRun(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	for version, want := range map[string]string{`"protocolVersion":"1.0",`: "RUN_FINISHED", "": "RUN_ERROR"} {
		res := s.Do(t, apitest.Call{Path: apitest.RunsPath, Body: `{"threadId":"t` + want + `","runId":"r",` + version +
			`"messages":[{"role":"user","content":` + apitest.Quote(apitest.HeldCommand) + `}]}`})
		s.Gate.Await(t)
		id, ok, err := s.Sessions.ByCaller(t.Context(), s.Workspace.ID, "t"+want)
		if err != nil || !ok {
			t.Fatal(err, ok)
		}
		if _, err := s.Turns.Cancel(t.Context(), s.Workspace.ID, id); err != nil {
			t.Fatal(err)
		}
		list, ok := apitest.Frames(t, res)
		if last := list[len(list)-1]; !ok || !strings.HasSuffix(apitest.FrameTypes(t, list), want) ||
			!strings.Contains(last, `"cancelled"`) && !strings.Contains(last, `"canceled"`) {
			t.Errorf("%s: %v", version, list)
		}
	}
}
