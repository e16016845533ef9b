package agui_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/sse"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/apitest"
)

const message0 = "TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END"

func TestRuns(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	list := s.Stream(t, apitest.AGUIRun("t1", "r1", "count to 3"))
	if got := apitest.FrameTypes(t, list); got != "RUN_STARTED "+message0+" RUN_FINISHED" || apitest.FrameField(list, "threadId") != "t1" ||
		apitest.FrameField(list, "runId") != "r1" {
		t.Errorf("%s", got)
	}
	if again := s.Stream(t, apitest.AGUIRun("t1", "r1", "count to 3")); strings.Join(again, "\n") != strings.Join(list, "\n") {
		t.Errorf("a run that is sent again: %v", again)
	}
	session := runSession(t, list)
	if other := runSession(t, s.Stream(t, apitest.AGUIRun("t1", "r2", "count to 2"))); other != session {
		t.Errorf("one thread is the sessions %s and %s", session, other)
	}
	if other := runSession(t, s.Stream(t, apitest.AGUIRun(session, "r3", "count to 2"))); other != session {
		t.Errorf("the thread %s is the session %s", session, other)
	}
	if got := apitest.FrameTypes(t, s.Stream(t, apitest.AGUIRun("t1", "r4", "@error model_error"))); got != "RUN_STARTED RUN_ERROR" {
		t.Errorf("a failure: %s", got)
	}
	for name, body := range map[string]string{
		"nothing":        `{}`,
		"no message":     `{"threadId":"t1","runId":"r","messages":[]}`,
		"no run":         `{"threadId":"t1","messages":[{"role":"user","content":"x"}]}`,
		"a picture":      `{"threadId":"t1","runId":"r","messages":[{"role":"user","content":[{"type":"image","source":{}}]}]}`,
		"a status":       apitest.AGUIResume("t1", uuid.NewString(), `"status":"done"`).Body,
		"a secret value": apitest.AGUIResume("t1", uuid.NewString(), `"status":"resolved","payload":{"value":"hunter2"}`).Body,
	} {
		if r := s.Get(t, apitest.Call{Path: apitest.RunsPath, Body: body}); r.Status != 400 || r.Code != "INVALID_REQUEST" ||
			strings.Contains(r.Text, "hunter2") {
			t.Errorf("%s: %d %s", name, r.Status, r.Text)
		}
	}
	nameless := func(text string) apitest.Call {
		return apitest.Call{Path: apitest.RunsPath, Body: `{"threadId":"t1","runId":"r9","messages":[{"role":"user","content":"` + text + `"}]}`}
	}
	s.Stream(t, nameless("count to 2"))
	if r := s.Get(t, nameless("another text")); r.Status != 422 || r.Code != "IDEMPOTENCY_KEY_REUSED" ||
		!strings.Contains(r.Text, "This runId") {
		t.Errorf("another message under one run: %d %s", r.Status, r.Text)
	}
}

func runSession(t *testing.T, list []string) string {
	t.Helper()
	var f struct{ Metadata map[string]string }
	if err := json.Unmarshal([]byte(list[0]), &f); err != nil || f.Metadata["session_id"] == "" {
		t.Fatalf("%s: %v", list[0], err)
	}
	return f.Metadata["session_id"]
}

// TestRunOfAMessageThatIsThere checks that a message is one turn, whatever the id of the run;
// another text or another id makes another turn.
func TestRunOfAMessageThatIsThere(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	run := func(thread, run, id, text, rest string) apitest.Call {
		return apitest.Call{Path: apitest.RunsPath,
			Body: fmt.Sprintf(`{"threadId":%q,"runId":%q,"messages":[{"id":%q,"role":"user","content":%q}],"forwardedProps":{%s}}`, thread,
				run, id, text, rest)}
	}
	list := s.Stream(t, run("t1", "r1", "m1", "count to 3", ""))
	for i, rest := range []string{"", `"tab":2`, `"multitask_strategy":"interrupt"`} {
		res := s.Do(t, run("t1", fmt.Sprint("again", i), "m1", "count to 3", rest))
		if again, _ := apitest.Frames(t, res); strings.Join(again[1:len(again)-1], "\n") != strings.Join(list[1:len(list)-1], "\n") ||
			res.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("the same message in another run: %v", again)
		}
	}
	if n := s.CountMessages(t); n != 1 {
		t.Fatalf("one message became %d", n)
	}
	for i, c := range []apitest.Call{run("t1", "r2", "m2", "count to 3", ""), run("t1", "r3", "m1", "count to 2", ""),
		run("t2", "r1", "m1", "count to 3", "")} {
		if s.Stream(t, c); s.CountMessages(t) != i+2 {
			t.Errorf("%s: %d messages", c.Body, s.CountMessages(t))
		}
	}
	if r := s.Get(t, run("t1", "r1", "m1", "count to 3", `"limits":{"max_turns":2}`)); r.Status != 422 ||
		!strings.Contains(r.Text, "This messages/0/id") || strings.Contains(r.Text, "Idempotency-Key") {
		t.Errorf("the same id with other content: %d %s", r.Status, r.Text)
	}
	s.Do(t, run("t3", "r1", "m1", apitest.HeldCommand, "")).Body.Close()
	s.Gate.Await(t)
	res := s.Do(t, run("t3", "r2", "m1", apitest.HeldCommand, ""))
	s.Gate.Leave <- struct{}{}
	if list, ok := apitest.Frames(t, res); !ok || s.CountMessages(t) != 5 {
		t.Errorf("in progress: %v, %d messages", list, s.CountMessages(t))
	}
}

// TestRunIsAttached checks that a run without a message attaches to the turn in progress.
func TestRunIsAttached(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	s.Do(t, apitest.AGUIRun("t1", "r1", apitest.HeldCommand)).Body.Close()
	s.Gate.Await(t)
	res := s.Do(t, apitest.Call{Path: apitest.RunsPath, Body: `{"threadId":"t1","runId":"r2","messages":[]}`})
	s.Gate.Leave <- struct{}{}
	list, ok := apitest.Frames(t, res)
	if got := apitest.FrameTypes(t, list); !ok || got != "RUN_STARTED "+message0+
		" TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END TOOL_CALL_RESULT "+message0+" RUN_FINISHED" {
		t.Errorf("%s", got)
	}
}

// TestRunBeginsWithASnapshot checks that the client's copy of a turn is removed before the turn is
// sent again.
func TestRunBeginsWithASnapshot(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	res := s.Do(t, apitest.AGUIRun("t1", "r1", "@text 3 deltas\n@call gate {}\n@call gate {}\n@text 3 deltas"))
	s.Gate.Await(t)
	s.Gate.Leave <- struct{}{}
	s.Gate.Await(t)
	var turn struct{ Metadata map[string]string }
	reader := sse.NewReader(res.Body)
	var first string // call of the turn
	for first == "" {
		f, err := reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		if turn.Metadata == nil {
			_ = json.Unmarshal(f.Data, &turn)
		}
		first = apitest.FrameField([]string{string(f.Data)}, "toolCallId")
	}
	res.Body.Close()
	kept := []string{
		`{"id":"u0","role":"user","content":"x"}`,
		`{"id":"` + uuid.NewString() + `-1","role":"assistant","content":"of another turn"}`,
		`{"id":"u1","role":"user","content":"y"}`,
		`{"id":"own","role":"assistant","content":"z","toolCalls":[{"id":"another","type":"function","function":{"name":"f","arguments":""}}]}`,
		`{"id":"result","role":"tool","toolCallId":"another","content":"z"}`,
	}
	theirs := []string{
		`{"id":"` + turn.Metadata["turn_id"] + `-1","role":"assistant","content":"0 1"}`,
		`{"id":"` + first + `","role":"assistant","toolCalls":[{"id":"` + first +
			`","type":"function","function":{"name":"gate","arguments":"{"}}]}`,
		`{"id":"` + first + `-result","role":"tool","toolCallId":"` + first + `","content":"x"}`,
	}
	come := func(list []string) []string {
		return begins(t, s.Do(t, apitest.Call{Path: apitest.RunsPath, Body: `{"threadId":"t1","runId":"` + uuid.NewString() +
			`","messages":[` + strings.Join(list, ",") + `]}`}), 2)
	}
	if got := come(kept); !strings.Contains(got[1], "TEXT_MESSAGE_START") {
		t.Errorf("a client without messages of the turn: %v", got)
	}
	if got, want := come(slices.Concat(kept, theirs)), `{"type":"MESSAGES_SNAPSHOT","messages":[`+strings.Join(kept,
		",")+`]}`; got[1] != want {
		t.Errorf("%s, want\n%s", got[1], want)
	}
	if got := come(theirs); got[1] != `{"type":"MESSAGES_SNAPSHOT","messages":[]}` {
		t.Errorf("a client without other messages: %s", got[1])
	}
	mixed := strings.Replace(kept[3], `[{`, theirs[1][strings.Index(theirs[1], `[{`):len(theirs[1])-2]+`,{`, 1)
	if got := come([]string{mixed}); strings.Contains(got[1], first) || !strings.Contains(got[1], `"another"`) ||
		!strings.Contains(got[1], `"content":"z"`) {
		t.Errorf("%s of %s", got[1], mixed)
	}
	s.Gate.Leave <- struct{}{}
}

// begins returns the first frames of a stream, and then closes it.
func begins(t *testing.T, res *http.Response, n int) (list []string) {
	t.Helper()
	reader := sse.NewReader(res.Body)
	for range n {
		f, err := reader.Next()
		if err != nil {
			t.Fatalf("%v after %v", err, list)
		}
		list = append(list, string(f.Data))
	}
	res.Body.Close()
	return list
}

func TestInterrupts(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	for name, answer := range map[string]string{
		"resolved":  `"status":"resolved","payload":{"approved":true}`,
		"refused":   `"status":"resolved","payload":{"approved":false,"reason":"no"}`,
		"cancelled": `"status":"cancelled"`,
	} {
		list := s.Stream(t, apitest.AGUIRun(name, name, "@call gate {}\n@say the end"))
		id, reason := apitest.FrameInterrupt(t, list)
		if got := apitest.FrameTypes(t, list); got != "RUN_STARTED TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END RUN_FINISHED" ||
			reason != "tool_call" {
			t.Fatalf("%s: %s, %s", name, got, reason)
		}
		for forged, c := range map[string]apitest.Call{"another thread's": apitest.AGUIResume("other", id, answer),
			"nobody's": apitest.AGUIResume(name, uuid.NewString(), answer), "undecided": apitest.AGUIResume(name, id, `"status":"resolved"`)} {
			if got := apitest.FrameTypes(t, s.Stream(t, c)); got != "RUN_STARTED RUN_ERROR" {
				t.Errorf("%s interrupt: %s", forged, got)
			}
		}
		if name == "resolved" {
			s.Gate.Leave <- struct{}{}
		}
		if got := apitest.FrameTypes(t, s.Stream(t, apitest.AGUIResume(name, id, answer))); got != "RUN_STARTED TOOL_CALL_RESULT "+message0+
			" RUN_FINISHED" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if len(s.Gate.Entered) != 1 {
		t.Errorf("the tool ran %d times", len(s.Gate.Entered))
	}
}

func TestExpiredInterruptIsARunError(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Millisecond})
	list := s.Stream(t, apitest.AGUIRun("t", "r", "@call gate {}\n@say the end"))
	var id string
	if err := s.Pool.QueryRow(t.Context(), "SELECT id::text FROM approvals").Scan(&id); err != nil {
		t.Fatalf("%v after %v", err, list)
	}
	late := s.Stream(t, apitest.AGUIResume("t", id, `"status":"resolved","payload":{"approved":true}`))
	if got := apitest.FrameTypes(t, late); got != "RUN_STARTED RUN_ERROR" || apitest.FrameField(late, "code") != "APPROVAL_EXPIRED" {
		t.Errorf("%v", late)
	}
	if got := apitest.FrameTypes(t, s.Stream(t, apitest.AGUIResume("t", id,
		`"status":"cancelled"`))); got != "RUN_STARTED TOOL_CALL_RESULT "+message0+" RUN_FINISHED" {
		t.Errorf("given up: %s", got)
	}
}

func TestInterruptForASecret(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	s.Declare(t, "API_TOKEN")
	ask := apitest.AGUIRun("t", "r", "@call request_secret {\"key_name\":\"API_TOKEN\",\"reason\":\"x\"}\n@say the end")
	id, reason := apitest.FrameInterrupt(t, s.Stream(t, ask))
	if reason != "input_required" {
		t.Errorf("%s", reason)
	}
	skip := apitest.AGUIResume("t", id, `"status":"cancelled"`)
	skip.Key = s.Issue(t, s.Workspace, apikey.Chat)
	if r := s.Get(t, skip); r.Status != 403 || r.Code != "INSUFFICIENT_SCOPE" {
		t.Errorf("without the scope: %d %s", r.Status, r.Text)
	}
	skip.Key = ""
	if got := apitest.FrameTypes(t, s.Stream(t, skip)); got != "RUN_STARTED TOOL_CALL_RESULT "+message0+" RUN_FINISHED" {
		t.Errorf("%s", got)
	}
}
