package anthropic_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/anthropic"
	"github.com/parley-server/parley/internal/model/provider"
	"github.com/parley-server/parley/internal/testing/modeltest"
)

// ask sends requests to a model with a name, and returns what its server receives.
func ask(t *testing.T, name string, script *modeltest.Script, requests ...model.Request) (bodies []map[string]any, last modeltest.Heard) {
	t.Helper()
	srv := modeltest.Anthropic(script)
	t.Cleanup(srv.Close)
	m := anthropic.New(anthropic.Config{Model: name, BaseURL: srv.URL, HTTPClient: srv.Client()})
	for _, req := range requests {
		var err error
		if last, err = modeltest.Read(m.Generate(t.Context(), req)); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range script.Requests() {
		bodies = append(bodies, decode(t, string(r.Body)))
	}
	return bodies, last
}

var hello = []model.Message{{Role: model.User, Text: "Hello"}}

// TestEffortFitsTheModel checks each generation of models: some take a budget of tokens, newer ones
// an effort.
func TestEffortFitsTheModel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"claude-3-5-haiku-latest":    `{"output_config":{"effort":"low"}}`,
		"claude-3-7-sonnet-latest":   `{"thinking":{"type":"enabled","budget_tokens":4096}}`,
		"claude-opus-4-20250514":     `{"thinking":{"type":"enabled","budget_tokens":4096}}`,
		"claude-sonnet-4-5-20250929": `{"thinking":{"type":"enabled","budget_tokens":4096}}`,
		"claude-opus-4-6":            `{"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}}`,
		"claude-sonnet-5":            `{"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}}`,
		"claude-haiku-5-5":           `{"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}}`,
		"another":                    `{"output_config":{"effort":"low"}}`,
	} {
		bodies, _ := ask(t, name, modeltest.Say("ok"), model.Request{Messages: hello, Effort: "low"})
		got := map[string]any{}
		for _, member := range []string{"thinking", "output_config"} {
			if v, ok := bodies[0][member]; ok {
				got[member] = v
			}
		}
		if diff := cmp.Diff(decode(t, want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestThinkingGoesOnlyWithWhatTheProtocolAllows checks the parameters that thinking excludes.
func TestThinkingGoesOnlyWithWhatTheProtocolAllows(t *testing.T) {
	t.Parallel()
	tools := []model.Tool{{Name: "clock"}}
	half := 0.5
	bodies, _ := ask(t, "claude-sonnet-4-5", modeltest.Say("ok"),
		model.Request{Messages: hello, Effort: "high", Options: model.Options{Temperature: &half}},
		model.Request{Messages: hello, Effort: "high", Tools: tools, MustCall: true},
		model.Request{Messages: hello, Effort: "high", MaxTokens: 1500},
		model.Request{Messages: hello, Effort: "high", Partial: "Once"},
		model.Request{Messages: hello, Effort: "high", Output: &model.Output{Name: "a", Schema: json.RawMessage(`{"type":"object"}`)}})
	if bodies[0]["temperature"] != nil {
		t.Error("a temperature beside thinking")
	}
	for i, thinks := range []bool{true, false, false, true, false} {
		if (bodies[i]["thinking"] != nil) != thinks {
			t.Errorf("request %d: thinking is %v", i, bodies[i]["thinking"])
		}
	}
	messages := bodies[3]["messages"].([]any)
	if role := messages[len(messages)-1].(map[string]any)["role"]; role != "user" {
		t.Errorf("a prefill beside thinking: %v", messages)
	}
	bodies, _ = ask(t, "claude-opus-4-8", modeltest.Say("ok"), model.Request{Messages: hello, Options: model.Options{Temperature: &half,
		TopP: &half}})
	if bodies[0]["temperature"] != nil || bodies[0]["top_p"] != nil {
		t.Errorf("parameters that the model rejects: %v", bodies[0])
	}
}

// TestThinkingReturnsInItsPlace sends a reply with thinking before and between its parts back, as the
// provider requires it: unchanged, and in the same order.
func TestThinkingReturnsInItsPlace(t *testing.T) {
	t.Parallel()
	var frames []string
	add := func(kind, data string) {
		frames = append(frames, modeltest.Named(kind, `{"type":"`+kind+`",`+data+`}`))
	}
	add("message_start", `"message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}`)
	blocks := []string{`{"type":"thinking","thinking":"First ü","signature":"s1"}`, `{"type":"redacted_thinking","data":"opaque"}`,
		`{"type":"text","text":"I look."}`,
		`{"type":"thinking","thinking":"","signature":"s2"}`, `{"type":"tool_use","id":"call_a","name":"clock","input":{}}`,
		`{"type":"thinking","thinking":"Third","signature":"s3"}`,
		`{"type":"tool_use","id":"call_b","name":"clock","input":{}}`}
	for i, b := range blocks {
		add("content_block_start", fmt.Sprintf(`"index":%d,"content_block":%s`, i, b))
		add("content_block_stop", fmt.Sprintf(`"index":%d`, i))
	}
	add("message_delta", `"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":2}`)
	frames = append(frames, modeltest.Named("message_stop", `{"type":"message_stop"}`))
	_, got := ask(t, "claude-sonnet-4-5", &modeltest.Script{Replies: []modeltest.Reply{{Frames: frames}}}, model.Request{Messages: hello,
		Effort: "low"})
	if got.Text != "I look." || got.Summary != "First ü\n\nThird" || len(got.Reasoning) != 4 {
		t.Fatalf("received %+v", got)
	}
	next := append(slices.Clone(hello), model.Message{Role: model.Assistant, Text: got.Text, Calls: got.Calls, Reasoning: got.Reasoning},
		model.Message{Role: model.ToolRole, CallID: "call_a", Text: "noon"}, model.Message{Role: model.ToolRole, CallID: "call_b", Text: "noon"})
	bodies, _ := ask(t, "claude-sonnet-4-5", modeltest.Say("ok"), model.Request{Messages: next, Effort: "low"})
	want := decode(t, `{"content":[`+strings.Join(blocks, ",")+`]}`)["content"]
	if diff := cmp.Diff(want, bodies[0]["messages"].([]any)[1].(map[string]any)["content"]); diff != "" || bodies[0]["thinking"] == nil {
		t.Errorf("thinking %v, content (-want +got):\n%s", bodies[0]["thinking"], diff)
	}

	bodies, _ = ask(t, "claude-opus-4-1", modeltest.Say("ok"), model.Request{Messages: next, Effort: "low"})
	if content := fmt.Sprint(bodies[0]["messages"].([]any)[1]); strings.Contains(content, "s1") || bodies[0]["thinking"] != nil {
		t.Errorf("another model received thinking %v, content %s", bodies[0]["thinking"], content)
	}
}

// TestRejectedThinkingIsLeftOut checks that a turn survives items that became invalid.
func TestRejectedThinkingIsLeftOut(t *testing.T) {
	t.Parallel()
	script := &modeltest.Script{Replies: []modeltest.Reply{
		{Reasoning: []string{"Hm."}, Calls: []modeltest.Call{{ID: "call_a", Tool: "clock"}}},
		{Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid signature ` +
			`in thinking block"}}`},
		{Text: []string{"Noon."}},
	}}
	srv := modeltest.Anthropic(script)
	t.Cleanup(srv.Close)
	m := speak(srv.URL, srv.Client())
	first, err := modeltest.Read(m.Generate(t.Context(), model.Request{Messages: hello}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := modeltest.Read(m.Generate(t.Context(), model.Request{Messages: append(slices.Clone(hello),
		model.Message{Role: model.Assistant, Calls: first.Calls, Reasoning: first.Reasoning}, model.Message{Role: model.ToolRole,
			CallID: "call_a", Text: "noon"})}))
	if err != nil || got.Text != "Noon." {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, want := range []bool{false, true, false} {
		if has := strings.Contains(string(script.Requests()[i].Body), `"Hm."`); has != want {
			t.Errorf("request %d has thinking: %t", i, has)
		}
	}
}

// TestPrefillContinuesTheReply checks that the model continues its own text, without the blanks that
// a prefill cannot end with, and that newer models get the instruction.
func TestPrefillContinuesTheReply(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{"there was": "there was", " \nthere was": "there was", "\nthere": "\nthere",
		" \n there": " there"} {
		script := modeltest.Say(strings.Split(said, "")...)
		bodies, got := ask(t, "claude-sonnet-4-5", script, model.Request{Messages: hello, Partial: "Once upon \n"})
		messages := bodies[0]["messages"].([]any)
		last, _ := json.Marshal(messages[len(messages)-1])
		if len(messages) != 2 || string(last) != `{"content":[{"text":"Once upon","type":"text"}],"role":"assistant"}` {
			t.Errorf("messages %v", messages)
		}
		if got.Text != want {
			t.Errorf("%q continues with %q, want %q", said, got.Text, want)
		}
	}
	for _, name := range []string{"claude-opus-4-6", "claude-haiku-5-5", "another"} {
		bodies, _ := ask(t, name, modeltest.Say("ok"), model.Request{Messages: hello, Partial: "Once upon"})
		messages := bodies[0]["messages"].([]any)
		if last, _ := json.Marshal(messages[len(messages)-1]); len(messages) != 3 || !strings.Contains(string(last), provider.Continue) {
			t.Errorf("%s: messages %v", name, messages)
		}
	}
}

// TestStepsOfATurnShareTheirBeginning counts what a provider with a cache must read again: 20 steps
// with tool results, of which each but the first finds nine tenths of its input at a breakpoint of
// the step before.
func TestStepsOfATurnShareTheirBeginning(t *testing.T) {
	t.Parallel()
	script := modeltest.Say("ok")
	srv := modeltest.Anthropic(script)
	t.Cleanup(srv.Close)
	m := speak(srv.URL, srv.Client())
	req := model.Request{System: strings.Repeat("You are Parley. ", 500), Messages: slices.Clone(hello),
		Tools: []model.Tool{{Name: "clock", Description: strings.Repeat("Tells the time. ", 100)}, {Name: "read"}}}
	for i := range 20 {
		if _, err := modeltest.Read(m.Generate(t.Context(), req)); err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprintf("call_%d", i)
		req.Messages = append(req.Messages,
			model.Message{Role: model.Assistant, Text: "I look.", Calls: []event.ToolCall{{ID: id, Tool: "clock", Input: json.RawMessage(`{}`)}}},
			model.Message{Role: model.ToolRole, CallID: id, Text: strings.Repeat("noon ", 60)})
	}
	var cached map[string]int
	for i, r := range script.Requests() {
		whole, now := modeltest.Breakpoints(r.Body)
		longest := 0
		for prefix, size := range cached {
			if _, ok := now[prefix]; ok {
				longest = max(longest, size)
			}
		}
		if len(now) > 4 || i > 0 && longest*10 < whole*9 {
			t.Errorf("step %d: %d breakpoints, %d of %d bytes are in the cache", i+1, len(now), longest, whole)
		}
		cached = now
	}
}
