package agui_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// ownTools are the tools of a page.
const ownTools = `{"name":"get_weather","description":"The weather of a city.",` +
	`"parameters":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"city":{"type":"string"}},` +
	`"required":["city"]}},{"name":"get_time","description":"","parameters":{"type":"object","properties":{}}}`

// runWithTools returns the client's next request, with its tools.
func (c *thread) runWithTools(t *testing.T, id string) apitest.Call {
	call := c.run(t, id)
	call.Body = strings.Replace(call.Body, `"resume":[]`, `"tools":[`+ownTools+`],"context":[]`, 1)
	return call
}

// result adds a result of a call to the client's messages.
func (c *thread) result(id, call, content string) {
	c.messages = append(c.messages, map[string]any{"id": id, "role": "tool", "toolCallId": call, "content": content})
}

// callsOf returns the ids of the calls in the frames of a run, by the names of their tools.
func callsOf(t *testing.T, list []string) map[string]string {
	t.Helper()
	ids := make(map[string]string)
	for _, data := range list {
		var f struct{ Type, ToolCallID, ToolCallName string }
		if err := json.Unmarshal([]byte(data), &f); err != nil {
			t.Fatal(err)
		}
		if f.Type == "TOOL_CALL_START" {
			ids[f.ToolCallName] = f.ToolCallID
		}
	}
	return ids
}

// TestOwnTools: a run ends with calls of the client's tools, and the next one brings their results,
// which count only for calls of this thread.
func TestOwnTools(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	c, other := &thread{id: "t1"}, &thread{id: "t2"}
	c.say("m1", "@say I look.\n@call get_weather {\"city\":\"Paris\"} get_time {}\n@say the end")
	list := s.Stream(t, c.runWithTools(t, "r1"))
	const asked = "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END " +
		"TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END RUN_FINISHED"
	if got := apitest.FrameTypes(t, list); got != asked || !strings.Contains(list[len(list)-1], `"outcome":{"type":"success"}`) ||
		!strings.Contains(strings.Join(list, ""), `"delta":"{\"city\":\"Paris\"}"`) {
		t.Fatalf("%v", list)
	}
	ids := callsOf(t, list)
	c.hear(t, list)
	other.say("m1", "@call get_time {}\n@say the end")
	foreign := callsOf(t, s.Stream(t, other.runWithTools(t, "r1")))["get_time"]
	before, had := s.State(t), c.messages
	for _, id := range []string{foreign, "call_1"} {
		c.result("x1", ids["get_weather"], "21")
		c.result("x2", id, "12:00")
		if code, message := apitest.FrameRefusal(t, s.Stream(t, c.runWithTools(t, "r2"))); code != "TOOL_CALL_NOT_FOUND" ||
			!strings.Contains(message, id) {
			t.Errorf("%s: %s %s", id, code, message)
		}
		c.messages = had
	}
	// A client that comes back before it has the results gets the calls again.
	back := s.Stream(t, c.runWithTools(t, "r2"))
	if again := callsOf(t, back); fmt.Sprint(again) != fmt.Sprint(ids) || !strings.HasSuffix(apitest.FrameTypes(t, back),
		"TOOL_CALL_END RUN_FINISHED") {
		t.Errorf("%v", back)
	}
	if after := s.State(t); after != before {
		t.Errorf("%s became %s", before, after)
	}
	c.result("x1", ids["get_weather"], "21")
	c.messages = append(c.messages, map[string]any{"id": "x2", "role": "tool", "toolCallId": ids["get_time"], "content": "",
		"error": "The clock stands still."})
	another := c.runWithTools(t, "r3")
	another.Key = s.Issue(t, s.Workspace, apikey.Chat)
	if r := s.Get(t, another); r.Code != "INSUFFICIENT_SCOPE" || s.State(t) != before {
		t.Errorf("another key: %d %s", r.Status, r.Text)
	}
	rest := s.Stream(t, c.runWithTools(t, "r3"))
	if got := apitest.FrameTypes(t, rest); got != "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED" {
		t.Errorf("%v", rest)
	}
	if again := s.Stream(t, c.runWithTools(t, "r3")); strings.Join(again, "\n") != strings.Join(rest, "\n") {
		t.Errorf("the same results again: %v", again)
	}
	if r := s.Get(t, another); r.Code != "INSUFFICIENT_SCOPE" {
		t.Errorf("the same results of another key: %d %s", r.Status, r.Text)
	}
	c.messages[len(c.messages)-1]["error"] = "It ticks."
	if code, _ := apitest.FrameRefusal(t, s.Stream(t, c.runWithTools(t, "r4"))); code != "TOOL_CALL_ANSWERED" {
		t.Errorf("another result: %s", code)
	}
	if r := s.Get(t, apitest.Call{Path: apitest.RunsPath, Body: strings.Replace(apitest.AGUIRun("t9", "r9", "x").Body, `"tools":[]`,
		`"tools":[{"name":"x","parameters":{"type":"string"}}]`, 1)}); r.Status != 400 ||
		!strings.Contains(r.Text, `"param":"/tools/0/parameters/type"`) {
		t.Errorf("a schema that is none: %d %s", r.Status, r.Text)
	}
}

// TestOwnToolsBeforeANewMessage: a message after the results of calls that the turn waits for is
// answered after that turn.
func TestOwnToolsBeforeANewMessage(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	c := &thread{id: "t1"}
	c.say("m1", "@call get_time {}\n@say It is noon.")
	list := s.Stream(t, c.runWithTools(t, "r1"))
	c.hear(t, list)
	c.result("x1", callsOf(t, list)["get_time"], "12:00")
	c.say("m2", "count to 3")
	list = s.Stream(t, c.runWithTools(t, "r2"))
	if got := apitest.FrameTypes(t, list); got != "RUN_STARTED "+message0+" "+message0+" RUN_FINISHED" ||
		!strings.Contains(strings.Join(list, ""), "noon") {
		t.Errorf("%v", list)
	}
	c.hear(t, list)
	c.say("m3", "count to 4")
	if got := apitest.FrameTypes(t, s.Stream(t, c.runWithTools(t, "r3"))); got != "RUN_STARTED "+message0+" RUN_FINISHED" {
		t.Errorf("the results are history: %s", got)
	}
}

// TestOwnToolsBesideAnApproval: a step that asks for an approval and calls a tool of the client sends
// that call when its result is needed. A client runs a call that it receives at once, and its result
// would get lost beside the answer to the interrupt.
func TestOwnToolsBesideAnApproval(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: wait.Limit})
	c := &thread{id: "t1"}
	c.say("m1", "@call gate {} get_time {}\n@say the end")
	list := s.Stream(t, c.runWithTools(t, "r1"))
	if ids := callsOf(t, list); ids["gate"] == "" || ids["get_time"] != "" {
		t.Errorf("%v", list)
	}
	id, _ := apitest.FrameInterrupt(t, list)
	c.hear(t, list)
	res := s.Do(t, c.run(t, "r2", entry(id, `"status":"resolved","payload":{"approved":true}`)))
	s.Gate.Await(t)
	s.Gate.Leave <- struct{}{}
	list, _ = apitest.Frames(t, res)
	ids := callsOf(t, list)
	if ids["get_time"] == "" {
		t.Fatalf("%v", list)
	}
	c.hear(t, list)
	had := c.messages
	c.result("x1", ids["get_time"], "12:00")
	c.result("x2", ids["get_time"], "13:00")
	if code, message := apitest.FrameRefusal(t, s.Stream(t, c.runWithTools(t, "r3"))); code != "TOOL_CALL_ANSWERED" {
		t.Errorf("%s %s", code, message)
	}
	c.messages = had
	c.result("x1", ids["get_time"], "12:00")
	if list := s.Stream(t, c.runWithTools(t, "r4")); !strings.Contains(strings.Join(list, ""), `"delta":"end"`) {
		t.Errorf("%v", list)
	}
}
