package aisdk_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// ownTools are the tools of a page in the terms of this service, and by name as some clients send
// them.
const (
	ownTools = `"tools":[{"name":"get_weather","description":"The weather of a city.","input_schema":{"type":"object",` +
		`"properties":{"city":{"type":"string"}},"required":["city"]}},{"name":"get_time"}],`
	namedTools = `"tools":{"get_weather":{"description":"The weather of a city.","parameters":{"type":"object",` +
		`"properties":{"city":{"type":"string"}}}},"get_time":{}},`
	ownCommand  = "@call get_weather {\"city\":\"Paris\"} get_time {}\n@call get_weather {\"city\":\"Nice\"}\n@say the end"
	wholeAnswer = "start start-step tool-input-available tool-output-available tool-input-available tool-output-error finish-step " +
		"start-step tool-input-available tool-output-available finish-step start-step text-start text-delta " +
		"text-end data-usage finish-step finish [DONE]"
)

// ownPart is a part with a result of a call that the page ran.
func ownPart(tool, id, rest string) string {
	return fmt.Sprintf(`{"type":"tool-%s","toolCallId":%q,"input":{},%s}`, tool, id, rest)
}

// pageAnswers is useChat's request when all calls of a step have a result. As the page shows one
// message, its earlier parts are in it.
func pageAnswers(chat string, parts ...string) apitest.Call {
	parts = append([]string{`{"type":"step-start"}`,
		`{"type":"dynamic-tool","toolName":"grep","toolCallId":"x","state":"output-available","output":"y","providerExecuted":true}`}, parts...)
	return apitest.UIChat(chat, apitest.UISubmitted+ownTools+`"messageId":"a1",`, apitest.UIUser("m1", "x"),
		`{"id":"a1","role":"assistant","parts":[`+strings.Join(parts, ",")+`]}`)
}

// calls returns the ids of the calls that a page has to run.
func calls(t *testing.T, list []string) (ids []string) {
	t.Helper()
	for _, data := range list {
		var f struct {
			Type, ToolCallID          string
			Input                     json.RawMessage
			Dynamic, ProviderExecuted bool
		}
		if data != "[DONE]" && json.Unmarshal([]byte(data), &f) != nil {
			t.Fatal(data)
		}
		if f.Type == "tool-input-available" && !f.ProviderExecuted {
			if f.Dynamic || f.Input == nil || strings.Contains(string(f.Input), "summary") {
				t.Errorf("a call of the page's own tool: %s", data)
			}
			ids = append(ids, f.ToolCallID)
		}
	}
	return ids
}

// TestOwnTools: the stream ends with calls of the page's tools, and the next request has their
// results, which count only for calls of this chat.
func TestOwnTools(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	for i, tools := range []string{ownTools, namedTools} {
		chat := fmt.Sprint("c", i)
		list := s.Stream(t, apitest.UIChat(chat, apitest.UISubmitted+tools, apitest.UIUser("m1", ownCommand)))
		one := calls(t, list)
		if got := apitest.FrameTypes(t, list); got != "start start-step tool-input-available finish-step finish [DONE]" || len(one) != 2 ||
			apitest.FrameField(list, "finishReason") != "tool-calls" {
			t.Fatalf("%v", list)
		}
		if again := calls(t, s.Stream(t, apitest.Call{Path: apitest.UIChatPath + "/" + chat + "/stream"})); fmt.Sprint(again) != fmt.Sprint(one) {
			t.Errorf("a page that is loaded again has the calls %v", again)
		}
		answered := []string{ownPart("get_weather", one[0], `"state":"output-available","output":{"celsius":21}`),
			ownPart("get_time", one[1], `"state":"output-error","errorText":"The clock stands still."`)}
		before := s.State(t)
		for name, c := range map[string]struct {
			call apitest.Call
			code string
		}{
			"an invented id": {pageAnswers(chat, ownPart("get_weather", "call_1", `"state":"output-available","output":1`)),
				"TOOL_CALL_NOT_FOUND"},
			"an invented id, too": {pageAnswers(chat, append(answered, ownPart("get_weather", uuid.NewString(),
				`"state":"output-available","output":1`))...), "TOOL_CALL_NOT_FOUND"},
			"another chat": {pageAnswers("new", answered...), "TOOL_CALL_NOT_FOUND"},
			"no id":        {pageAnswers(chat, `{"type":"tool-get_weather","state":"output-available","output":1}`), "INVALID_REQUEST"},
			"no result":    {pageAnswers(chat, ownPart("get_weather", one[0], `"state":"input-available"`)), "INVALID_REQUEST"},
			"a preliminary result": {pageAnswers(chat, ownPart("get_weather", one[0],
				`"state":"output-available","preliminary":true,"output":1`)), "INVALID_REQUEST"},
			"a key without the scope": {apitest.Call{Path: apitest.UIChatPath, Body: pageAnswers(chat, answered...).Body,
				Key: s.Issue(t, s.Workspace, apikey.SessionsRead)}, "INSUFFICIENT_SCOPE"},
		} {
			if r := s.Get(t, c.call); r.Code != c.code {
				t.Errorf("%s: %d %s", name, r.Status, r.Text)
			}
		}
		if after := s.State(t); after != before {
			t.Errorf("%s became %s", before, after)
		}
		list = s.Stream(t, pageAnswers(chat, answered...))
		two := calls(t, list)
		if got := apitest.FrameTypes(t, list); got != "start finish-step start-step tool-input-available finish-step finish [DONE]" ||
			len(two) != 1 {
			t.Fatalf("%v", list)
		}
		answered = append(answered, ownPart("get_weather", two[0], `"state":"output-available","output":"rain"`))
		rest := s.Stream(t, pageAnswers(chat, answered...))
		if got := apitest.FrameTypes(t,
			rest); got != "start finish-step start-step text-start text-delta text-end data-usage finish-step finish [DONE]" {
			t.Errorf("%v", rest)
		}
		if again := s.Stream(t, pageAnswers(chat, answered...)); strings.Join(again, "\n") != strings.Join(rest, "\n") {
			t.Errorf("the answer is sent again: %v", again)
		}
		other := pageAnswers(chat, ownPart("get_weather", two[0], `"state":"output-available","output":"sun"`))
		if r := s.Get(t, other); r.Status != 409 || r.Code != "TOOL_CALL_ANSWERED" {
			t.Errorf("another result: %d %s", r.Status, r.Text)
		}
		// A page without the history of the chat has the calls for display only.
		whole := s.Stream(t, apitest.UIChat(chat, apitest.UISubmitted, apitest.UIUser("m1", ownCommand)))
		if got := apitest.FrameTypes(t, whole); got != wholeAnswer || len(calls(t, whole)) != 0 ||
			!strings.Contains(strings.Join(whole, "\n"), `"output":{"celsius":21}`) {
			t.Errorf("%v", whole)
		}
	}
	if n := s.CountMessages(t); n != 2 {
		t.Errorf("%d messages", n)
	}
}

// TestOwnToolsOfAnotherChat: a call of one chat has no result in another.
func TestOwnToolsOfAnotherChat(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	ask := func(chat string) string {
		return calls(t, s.Stream(t, apitest.UIChat(chat, apitest.UISubmitted+ownTools,
			apitest.UIUser("m1", "@call get_time {}\n@say the end"))))[0]
	}
	one, two := ask("c1"), ask("c2")
	if r := s.Get(t, pageAnswers("c1", ownPart("get_time", two, `"state":"output-available"`))); r.Status != 404 ||
		r.Code != "TOOL_CALL_NOT_FOUND" {
		t.Errorf("%d %s", r.Status, r.Text)
	}
	if got := apitest.FrameTypes(t, s.Stream(t, pageAnswers("c1",
		ownPart("get_time", one, `"state":"output-available"`)))); !strings.HasSuffix(got, "finish [DONE]") {
		t.Errorf("a result without a value: %s", got)
	}
	for want, tools := range map[string]string{
		"tools/0/name must begin with a letter": `"tools":[{"name":"1x"}],`,
		"tools/0/name must be":                  `"tools":[{}],`,
		"tools must be an array":                `"tools":"x",`,
		"tools/1x must begin":                   `"tools":{"1x":{}},`,
		"tools/x must be an object":             `"tools":{"x":1},`,
		"The agent has a tool bash":             `"tools":{"bash":{}},`,
		"The input of a tool is an object":      `"tools":{"x":{"parameters":{"type":"string"}}},`,
	} {
		r := s.Get(t, apitest.UIChat("c3", apitest.UISubmitted+tools, apitest.UIUser("m1", "x")))
		if r.Status != 400 || !strings.Contains(r.Text, want) {
			t.Errorf("%s: %d %s", tools, r.Status, r.Text)
		}
	}
}

// TestCanceledOwnTools: a turn that is canceled after the results of the page's tools ends in another
// step. While the last step consists of complete calls, useChat sends them again, without an end.
func TestCanceledOwnTools(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	list := s.Stream(t, apitest.UIChat("c1", apitest.UISubmitted+ownTools, apitest.UIUser("m1", "@call get_time {}\n@wait 1m")))
	res := s.Do(t, pageAnswers("c1", ownPart("get_time", calls(t, list)[0], `"state":"output-available","output":1`)))
	if r := s.Get(t, apitest.Call{Method: http.MethodDelete, Path: apitest.UIChatPath + "/c1/stream"}); !strings.Contains(r.Text,
		`"canceled":true`) {
		t.Fatalf("%d %s", r.Status, r.Text)
	}
	list, _ = apitest.Frames(t, res)
	if got := apitest.FrameTypes(t, list); got != "start data-usage finish-step start-step abort [DONE]" {
		t.Errorf("%s", got)
	}
}

// TestResultsOfAnotherKey: a key that may not read the chat posts no result, and receives none of
// the answer with a result that the chat has.
func TestResultsOfAnotherKey(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	list := s.Stream(t, apitest.UIChat("c1", apitest.UISubmitted+ownTools, apitest.UIUser("m1", "@call get_time {}\n@say the end")))
	own := pageAnswers("c1", ownPart("get_time", calls(t, list)[0], `"state":"output-available","output":1`))
	other := own
	other.Key = s.Issue(t, s.Workspace, apikey.Chat)
	for range 2 {
		before := s.State(t)
		if r := s.Get(t, other); r.Status != 403 || r.Code != "INSUFFICIENT_SCOPE" || s.State(t) != before {
			t.Errorf("another key: %d %s", r.Status, r.Text)
		}
		if got := apitest.FrameTypes(t, s.Stream(t, own)); !strings.HasSuffix(got, "finish [DONE]") {
			t.Errorf("its key: %s", got)
		}
	}
}

// TestNothingOfARejectedMessageHasAnEffect: a message with an answer to an approval and a result that
// is rejected decides nothing, and two results of one call are a conflict.
func TestNothingOfARejectedMessageHasAnEffect(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: wait.Limit})
	list := s.Stream(t, apitest.UIChat("c", apitest.UISubmitted+ownTools, apitest.UIUser("m1", "@call gate {} get_time {}\n@say the end")))
	id, call := apitest.FrameField(list, "approvalId"), apitest.FrameField(list, "toolCallId")
	if id == "" {
		t.Fatalf("%v", list)
	}
	allowed := fmt.Sprintf(
		`{"type":"dynamic-tool","toolName":"gate","toolCallId":%q,"state":"approval-responded","approval":{"id":%q,"approved":true}}`, call, id)
	before := s.State(t)
	if r := s.Get(t, pageAnswers("c", allowed, ownPart("get_time", "call_forged",
		`"state":"output-available","output":1`))); r.Code != "TOOL_CALL_NOT_FOUND" {
		t.Errorf("%d %s", r.Status, r.Text)
	}
	if after := s.State(t); after != before {
		t.Errorf("%s became %s", before, after)
	}
	res := s.Do(t, pageAnswers("c", allowed))
	s.Gate.Await(t)
	s.Gate.Leave <- struct{}{}
	list, _ = apitest.Frames(t, res)
	asked := calls(t, list)
	if len(asked) != 1 {
		t.Fatalf("%v", asked)
	}
	two := pageAnswers("c", ownPart("get_time", asked[0], `"state":"output-available","output":1`), ownPart("get_time", asked[0],
		`"state":"output-available","output":2`))
	if r := s.Get(t, two); r.Code != "TOOL_CALL_ANSWERED" {
		t.Errorf("%d %s", r.Status, r.Text)
	}
	if list := s.Stream(t, pageAnswers("c", ownPart("get_time", asked[0], `"state":"output-available","output":2`))); apitest.FrameField(
		list, "finishReason") != "stop" {
		t.Errorf("%v", list)
	}
}
