package openai_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/testing/modeltest"
)

// hear reads a reply of these chunks, which are given as JSON.
func hear(t *testing.T, req model.Request, chunks ...string) (modeltest.Heard, error) {
	t.Helper()
	var frames []string
	for _, c := range chunks {
		frames = append(frames, "data: "+c+"\n\n")
	}
	srv := modeltest.OpenAI(&modeltest.Script{Replies: []modeltest.Reply{{Frames: append(frames, "data: [DONE]\n\n")}}})
	t.Cleanup(srv.Close)
	return modeltest.Read(speak(srv.URL, srv.Client()).Generate(t.Context(), req))
}

// delta returns the chunk of one delta.
func delta(members string) string {
	return `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{` + members +
		`},"finish_reason":null}]}`
}

func finish(reason string) string {
	return `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"` +
		reason + `"}]}`
}

func TestStopIsWhyTheReplyEnded(t *testing.T) {
	t.Parallel()
	call := delta(`"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"read","arguments":"{}"}}]`)
	for _, c := range []struct {
		chunks []string
		want   modeltest.Heard
	}{
		{[]string{delta(`"content":"Hi"`), finish("stop")}, modeltest.Heard{Text: "Hi", Stop: model.StopEnd}},
		{[]string{finish("stop")}, modeltest.Heard{Stop: model.StopEnd}},
		{[]string{delta(`"content":"Hi"`), finish("eos")}, modeltest.Heard{Text: "Hi", Stop: model.StopEnd}},
		{[]string{delta(`"content":"Hi"`), finish("length")}, modeltest.Heard{Text: "Hi", Stop: model.StopLength}},
		{[]string{delta(`"content":"Hi"`), finish("content_filter")}, modeltest.Heard{Text: "Hi", Stop: model.StopRefused}},
		{[]string{delta(`"refusal":"I can"`), delta(`"refusal":"not."`), finish("stop")}, modeltest.Heard{Text: "I cannot.",
			Stop: model.StopRefused}},
		{[]string{call, finish("length")}, modeltest.Heard{Stop: model.StopLength}},
		{[]string{call, finish("content_filter")}, modeltest.Heard{Stop: model.StopRefused}},
		{[]string{finish("tool_calls")}, modeltest.Heard{Stop: model.StopEnd}},
		{[]string{call, finish("stop")}, modeltest.Heard{Stop: model.StopTools,
			Calls: []event.ToolCall{{ID: "call_a", Tool: "read", Input: json.RawMessage(`{}`)}}}},
		{[]string{`{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}`}, modeltest.Heard{Text: "Hi", Stop: model.StopEnd}},
		{[]string{`{}`, `{"choices":null}`, `{"choices":[{"index":1,"delta":{"content":"another choice"}}]}`, finish("stop")},
			modeltest.Heard{Stop: model.StopEnd}},
	} {
		got, err := hear(t, model.Request{}, c.chunks...)
		if err != nil {
			t.Errorf("%v: %v", c.chunks, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v: reply differs (-want +got):\n%s", c.chunks, diff)
		}
	}
}

func TestUsageIsTheLastThatWasSent(t *testing.T) {
	t.Parallel()
	running := `{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}`
	total := `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14,"prompt_tokens_details":null}}`
	got, err := hear(t, model.Request{}, running, running, finish("stop"), total, `{"choices":[],"usage":null}`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&model.Usage{InputTokens: 9, OutputTokens: 5}, got.Usage); diff != "" {
		t.Error(diff)
	}
}

func TestCallsOfCarelessServers(t *testing.T) {
	t.Parallel()
	for what, chunks := range map[string][]string{
		"all at index 0": {
			delta(`"tool_calls":[{"index":0,"id":"call_a","function":{"name":"read","arguments":"{\"n\":1}"}}]`),
			delta(`"tool_calls":[{"index":0,"id":"call_b","function":{"name":"read","arguments":"{\"n\":2}"}}]`),
		},
		"no index": {
			delta(
				`"tool_calls":[{"id":"call_a","function":{"name":"read","arguments":"{\"n\":1}"}},{"id":"call_b",` +
					`"function":{"name":"read","arguments":"{\"n\":2}"}}]`),
		},
		"id and name in every piece": {
			delta(`"tool_calls":[{"index":0,"id":"call_a","function":{"name":"read","arguments":"{\"n\""}}]`),
			delta(`"tool_calls":[{"index":0,"id":"call_a","function":{"name":"read","arguments":":1}"}}]`),
			delta(`"tool_calls":[{"index":1,"id":"call_b","function":{"name":"read","arguments":"{\"n\":2}"}}]`),
		},
		"id and name late": {
			delta(`"tool_calls":[{"index":5,"function":{"arguments":"{\"n\":1}"}}]`),
			delta(`"tool_calls":[{"index":5,"id":"call_a","function":{"name":"read"}}]`),
			delta(`"tool_calls":[{"index":2,"id":"call_b","function":{"name":"read","arguments":"{\"n\":2}"}}]`),
		},
	} {
		got, err := hear(t, model.Request{}, append(chunks, finish("tool_calls"))...)
		want := modeltest.Heard{Stop: model.StopTools, Calls: []event.ToolCall{
			{ID: "call_a", Tool: "read", Input: json.RawMessage(`{"n":1}`)},
			{ID: "call_b", Tool: "read", Input: json.RawMessage(`{"n":2}`)},
		}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, reply differs (-want +got):\n%s", what, err, diff)
		}
	}
}

func TestCallIDsAreFreshWhereServersRepeatThem(t *testing.T) {
	t.Parallel()
	req := model.Request{Messages: []model.Message{
		{Role: model.Assistant, Calls: []event.ToolCall{{ID: "call_0", Tool: "read"}}},
		{Role: model.ToolRole, CallID: "call_0"},
	}}
	got, err := hear(t, req,
		delta(
			`"tool_calls":[{"index":0,"id":"call_0","function":{"name":"read","arguments":"{}"}},{"index":1,"function":{"name":"read"}},`+
				`{"index":2,"id":"same"},{"index":3,"id":"same"}]`),
		finish("tool_calls"))
	if err != nil || len(got.Calls) != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	seen := map[string]bool{"": true, "call_0": true}
	for _, c := range got.Calls {
		if seen[c.ID] {
			t.Errorf("the id %q is accepted", c.ID)
		}
		seen[c.ID] = true
	}
	if got.Calls[2].ID != "same" {
		t.Errorf("a valid id was replaced by %q", got.Calls[2].ID)
	}
}

func TestFailuresThatGatewaysPutIntoTheStream(t *testing.T) {
	t.Parallel()
	for chunk, want := range map[string]model.Error{
		`{"id":"g","choices":[],"error":{"code":429,"message":"upstream"}}`:        {Code: event.ModelOverloaded, Retryable: true},
		`{"error":{"code":502,"message":"upstream"}}`:                              {Code: event.ModelError, Retryable: true},
		`{"error":{"code":401,"message":"No auth"}}`:                               {Code: event.ModelError, Admin: true},
		`{"error":{"code":"503"}}`:                                                 {Code: event.ModelOverloaded, Retryable: true},
		`{"error":"out of memory"}`:                                                {Code: event.ModelError, Retryable: true},
		`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`: {Code: event.ModelError, Retryable: true},
	} {
		got, err := hear(t, model.Request{}, delta(`"content":"Hi"`), chunk)
		e, ok := errors.AsType[*model.Error](err)
		if !ok {
			t.Errorf("%s: %v", chunk, err)
			continue
		}
		if diff := cmp.Diff(want, model.Error{Code: e.Code, Retryable: e.Retryable, Admin: e.Admin}); diff != "" {
			t.Errorf("%s: %s", chunk, diff)
		}
		if got.Text != "Hi" || strings.Contains(e.Message+e.Err.Error(), "memory") {
			t.Errorf("%s: received %q, then %s (%v)", chunk, got.Text, e.Message, e.Err)
		}
	}
}

func TestReplyIsCompleteOnceTheServerSaidWhyItStopped(t *testing.T) {
	t.Parallel()
	frames := []string{"data: " + delta(`"content":"Hi"`) + "\n\n", "data: " + finish("stop") + "\n\n"}
	srv := modeltest.OpenAI(&modeltest.Script{Replies: []modeltest.Reply{{Frames: frames, Cut: 2}}})
	t.Cleanup(srv.Close)
	got, err := modeltest.Read(speak(srv.URL, srv.Client()).Generate(t.Context(), model.Request{}))
	if diff := cmp.Diff(modeltest.Heard{Text: "Hi", Stop: model.StopEnd}, got); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}
