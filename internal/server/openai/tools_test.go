package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/apitest"
)

// twoTools are functions of the client, in the format of completions.
const twoTools = `"tools":[{"type":"function","function":{"name":"weather","description":"The weather.","parameters":{"type":"object",` +
	`"properties":{"city":{"type":"string"}},"required":["city"]}}},` +
	`{"type":"function","function":{"name":"clock","parameters":{"properties":{}}}}]`

// twoItems are the same functions, in the format of responses.
const twoItems = `"tools":[{"type":"function","name":"weather","description":"The weather.","parameters":{"type":"object",` +
	`"properties":{"city":{"type":"string"}},"required":["city"]}},` +
	`{"type":"function","name":"clock","parameters":{}}]`

// mixedScript calls one of the server's tools and two of the client's in one step.
const mixedScript = "@text 2 deltas\n@call touch {} weather {\"city\":\"Rome\"} clock {}\n@say It is sunny."

// calledTool is a tool call in a completion or in a chunk of one.
type calledTool struct {
	Index    *int
	ID, Type string
	Function struct{ Name, Arguments string }
}

type toolMessage struct {
	Content *string
	Calls   []calledTool `json:"tool_calls"`
}

// completeTools returns the text, the calls and the finish reason of a completion.
func (s *service) completeTools(t *testing.T, body string, stream bool) (text string, calls []calledTool, finish string) {
	t.Helper()
	c := apitest.Call{Path: apitest.CompletionsPath, Body: body}
	if !stream {
		r := s.Get(t, c)
		var whole struct {
			Choices []struct {
				Message toolMessage
				Finish  string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(r.Text), &whole); err != nil || r.Status != 200 || len(whole.Choices) != 1 {
			t.Fatalf("%d %s: %v", r.Status, r.Text, err)
		}
		m := whole.Choices[0].Message
		if m.Content != nil {
			text = *m.Content
		}
		return text, m.Calls, whole.Choices[0].Finish
	}
	c.Body = strings.TrimSuffix(body, "}") + `,"stream":true}`
	for _, data := range s.Stream(t, c) {
		var chunk struct {
			Choices []struct {
				Delta  toolMessage
				Finish string `json:"finish_reason"`
			}
		}
		if data == "[DONE]" {
			continue
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		for _, choice := range chunk.Choices {
			if choice.Delta.Content != nil {
				text += *choice.Delta.Content
			}
			finish += choice.Finish
			for _, d := range choice.Delta.Calls {
				if d.Index == nil || *d.Index > len(calls) {
					t.Fatalf("a call without its index: %s", data)
				}
				if *d.Index == len(calls) {
					calls = append(calls, calledTool{})
				}
				call := &calls[*d.Index]
				call.ID, call.Type, call.Function.Name, call.Function.Arguments = call.ID+d.ID, call.Type+d.Type,
					call.Function.Name+d.Function.Name, call.Function.Arguments+d.Function.Arguments
			}
		}
	}
	return text, calls, finish
}

// withResults returns the request that follows an answer with calls: the conversation and the
// results.
func withResults(user, extra string, calls []calledTool, results ...string) string {
	var list []string
	for i, r := range results {
		list = append(list, fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%s}`, calls[i].ID, apitest.Quote(r)))
	}
	made, _ := json.Marshal(calls)
	return fmt.Sprintf(`{"model":"demo",%s,"messages":[{"role":"user","content":%s},{"role":"assistant","content":null,"tool_calls":%s},%s]}`,
		extra, apitest.Quote(user), made, strings.Join(list, ","))
}

// TestClientTools checks that a completion ends with the calls of the client's tools, that the next
// request with the results continues the turn, once, and that other ids are rejected.
func TestClientTools(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	for _, chat := range []string{"", `"user":"ann",`} {
		for _, stream := range []bool{false, true} {
			_, calls, finish := s.completeTools(t, apitest.Completion(mixedScript, chat+twoTools), stream)
			if len(calls) != 2 || finish != "tool_calls" || calls[0].Function.Name != "weather" ||
				calls[0].Function.Arguments != `{"city":"Rome"}` || calls[0].Type != "function" || calls[1].Function.Name != "clock" {
				t.Fatalf("stream %v: %+v %s", stream, calls, finish)
			}
			body := func(results ...string) string { return withResults(mixedScript, chat+twoTools, calls, results...) }
			if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: body("22 C")}); r.Status != 400 ||
				!strings.Contains(r.Text, calls[1].ID) {
				t.Errorf("a result is missing: %d %s", r.Status, r.Text)
			}
			if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: strings.ReplaceAll(body("22 C", "noon"), calls[0].ID,
				"call_forged")}); r.Status != 400 {
				t.Errorf("a forged id: %d %s", r.Status, r.Text)
			}
			if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: strings.Replace(body("22 C", "noon"), `"model"`,
				`"conversation":"x","session_id":"`+s.otherSession(t)+`","model"`, 1)}); r.Status != 400 && r.Status != 404 {
				t.Errorf("the chat of another: %d %s", r.Status, r.Text)
			}
			for range 2 { // a client may lose the answer and repeat its request
				if text, more, finish := s.completeTools(t, body("22 C", "noon"), stream); text != "It is sunny." || more != nil || finish != "stop" {
					t.Errorf("stream %v: %q %v %s", stream, text, more, finish)
				}
			}
			if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: body("other", "noon")}); r.Status != 409 {
				t.Errorf("another result: %d %s", r.Status, r.Text)
			}
		}
	}
	if n := s.CountMessages(t); n != 8 {
		t.Errorf("%d messages, want one for each turn", n)
	}
}

// otherSession returns a session that has none of the calls.
func (s *service) otherSession(t *testing.T) string {
	t.Helper()
	r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("count to 2", `"user":"another"`)})
	id, _ := r.Body["session_id"].(string)
	return id
}

// TestClientToolsInResponses checks the same for responses: items and events for the calls, and
// results by previous_response_id or by call_id alone.
func TestClientToolsInResponses(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	type item struct {
		Type, Name, Arguments string
		CallID                string `json:"call_id"`
	}
	for _, previous := range []bool{true, false} {
		first := s.Get(t, apitest.Call{Path: apitest.ResponsesPath, Body: `{"model":"demo",` + twoItems + `,"input":` +
			apitest.Quote(mixedScript) + `}`})
		var whole struct {
			ID, Status string
			Output     []item
		}
		if err := json.Unmarshal([]byte(first.Text), &whole); err != nil || whole.Status != "completed" || len(whole.Output) != 3 ||
			whole.Output[0].Type != "message" || whole.Output[1].Type != "function_call" ||
			whole.Output[1].Arguments != `{"city":"Rome"}` || whole.Output[2].Name != "clock" {
			t.Fatalf("%s: %v", first.Text, err)
		}
		results, member := "", ""
		for _, out := range whole.Output[1:] {
			results += fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"22 C"},`, out.CallID)
		}
		if previous {
			member = `"previous_response_id":"` + whole.ID + `",`
		} else {
			made, _ := json.Marshal(whole.Output)
			results = `{"role":"user","content":"x"},` + strings.Trim(string(made), "[]") + "," + results
		}
		next := apitest.Call{Path: apitest.ResponsesPath, Body: `{"model":"demo","stream":true,` + member + twoItems + `,"input":[` +
			strings.TrimSuffix(results, ",") + `]}`}
		list := s.Stream(t, next)
		if last := list[len(list)-1]; !strings.Contains(last, `"text":"It is sunny."`) || !strings.HasSuffix(apitest.FrameTypes(t, list),
			"response.completed") || strings.Contains(last, `"`+whole.ID+`"`) != previous {
			t.Errorf("%s", last)
		}
		next.Body = strings.ReplaceAll(next.Body, whole.Output[1].CallID, "call_other")
		if r := s.Get(t, next); r.Status != 400 {
			t.Errorf("a forged id: %d %s", r.Status, r.Text)
		}
	}
	list := s.Stream(t, apitest.Call{Path: apitest.ResponsesPath, Body: `{"model":"demo","stream":true,` + twoItems +
		`,"input":"@call clock {}"}`})
	if got := apitest.FrameTypes(t,
		list); got != "response.created response.in_progress response.output_item.added response.function_call_arguments.delta "+
		"response.function_call_arguments.done response.output_item.done response.completed" {
		t.Errorf("%s", got)
	}
}

// TestForcedTool checks that one tool that must be called is a structured answer in the shape of a
// call, and that a client that posts its result continues the session.
func TestForcedTool(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	oneTool := `"tools":[{"type":"function","function":{"name":"answer","parameters":{"type":"object",` +
		`"properties":{"n":{"type":"integer"}},"required":["n"]}}}],`
	for choice, want := range map[string]string{`"required"`: "tool_calls", `{"type":"function","function":{"name":"answer"}}`: "stop"} {
		for _, stream := range []bool{false, true} {
			const script = "@structured {\"n\":\"x\"}\n@structured {\"n\":7}"
			extra := oneTool + `"tool_choice":` + choice
			text, calls, finish := s.completeTools(t, apitest.Completion(script, extra), stream)
			if text != "" || len(calls) != 1 || finish != want || calls[0].Function.Name != "answer" || calls[0].Function.Arguments != `{"n":7}` {
				t.Fatalf("%s, stream %v: %q %+v %s", choice, stream, text, calls, finish)
			}
			body := strings.Replace(withResults(script, `"n":1`, calls, "count to 4"), `"model"`, `"temperature":0,"model"`, 1)
			if text, _, finish := s.completeTools(t, body, stream); finish != "stop" || text == "" {
				t.Errorf("the result: %q %s", text, finish)
			}
			if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: strings.Replace(body, calls[0].ID,
				"call_00000000000070008000000000000001", 2)}); r.Status != 400 {
				t.Errorf("a forged call: %d %s", r.Status, r.Text)
			}
		}
	}
	if n := s.CountMessages(t); n != 8 {
		t.Errorf("%d messages", n)
	}
	_, calls, finish := s.completeTools(t, apitest.Completion("count to 3", twoTools+`,"tool_choice":"required"`), false)
	if len(calls) != 1 || finish != "tool_calls" {
		t.Errorf("one of two tools is required: %+v %s", calls, finish)
	}
	if _, calls, _ := s.completeTools(t, apitest.Completion("@call clock {}\n@say no", twoTools+`,"tool_choice":"none"`),
		false); calls != nil {
		t.Errorf("no tool is offered: %+v", calls)
	}
}

// TestAbandonedCalls checks that the next message of a named chat ends a turn that waits for results
// of the client.
func TestAbandonedCalls(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	s.completeTools(t, apitest.Completion("@call clock {}", `"user":"ann",`+twoTools), false)
	if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("count to 3",
		`"user":"ann"`)}); r.Status != 200 || apitest.CompletionText(t, r) != "1 2 3" {
		t.Errorf("%d %s", r.Status, r.Text)
	}
}
