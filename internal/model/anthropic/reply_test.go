package anthropic_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/testing/modeltest"
)

// hear reads a reply of these events, which are given as JSON.
func hear(t *testing.T, events ...string) (modeltest.Heard, error) {
	t.Helper()
	var frames []string
	for _, e := range events {
		var typ struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal([]byte(e), &typ); err != nil {
			t.Fatal(err)
		}
		frames = append(frames, modeltest.Named(typ.Type, e))
	}
	srv := modeltest.Anthropic(&modeltest.Script{Replies: []modeltest.Reply{{Frames: frames}}})
	t.Cleanup(srv.Close)
	return modeltest.Read(speak(srv.URL, srv.Client()).Generate(t.Context(), model.Request{}))
}

const (
	start = `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":10,` +
		`"cache_creation_input_tokens":200,"cache_read_input_tokens":3000,"output_tokens":1}}}`
	text  = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}`
	call  = `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input":{}}}`
	input = `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}`
	stop  = `{"type":"message_stop"}`
)

func end(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":42}}`
}

func TestStopIsWhyTheReplyEnded(t *testing.T) {
	t.Parallel()
	usage := &model.Usage{InputTokens: 3210, CachedTokens: 3000, CacheWriteTokens: 200, OutputTokens: 42}
	for reason, want := range map[string]model.Stop{
		"end_turn": model.StopEnd, "stop_sequence": model.StopEnd, "pause_turn": model.StopEnd, "something_new": model.StopEnd,
		"max_tokens": model.StopLength, "model_context_window_exceeded": model.StopLength,
		"refusal": model.StopRefused,
	} {
		got, err := hear(t, start, text, end(reason), stop)
		if diff := cmp.Diff(modeltest.Heard{Text: "Hi", Usage: usage, Stop: want}, got); err != nil || diff != "" {
			t.Errorf("%s: %v, reply differs (-want +got):\n%s", reason, err, diff)
		}
	}
	for _, reason := range []string{"max_tokens", "refusal"} {
		got, err := hear(t, start, call, input, end(reason), stop)
		if err != nil || len(got.Calls) != 0 {
			t.Errorf("%s with a call: %+v, %v", reason, got, err)
		}
	}
	got, err := hear(t, start, call, input, end("tool_use"), stop)
	want := modeltest.Heard{Usage: usage, Stop: model.StopTools,
		Calls: []event.ToolCall{{ID: "toolu_1", Tool: "read", Input: json.RawMessage(`{"a":1}`)}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("tool_use: %v, reply differs (-want +got):\n%s", err, diff)
	}
}

func TestReplyWithoutMessageStopIsADisconnect(t *testing.T) {
	t.Parallel()
	got, err := hear(t, start, text, end("end_turn"))
	e, ok := errors.AsType[*model.Error](err)
	if !ok || e.Code != event.ModelError || !e.Retryable || got.Text != "Hi" || got.Stop != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestUnknownEventsAndBlocksArePassedOver(t *testing.T) {
	t.Parallel()
	got, err := hear(t, start,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"something_new","index":7}`,
		`{"type":"content_block_delta","index":9,"delta":{"type":"input_json_delta","partial_json":"{}"}}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"Oh. "}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hi"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"something_new","text":"not this"}}`,
		end("end_turn"), stop)
	if err != nil || got.Text != "Oh. Hi" || got.Stop != model.StopEnd || len(got.Calls) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestInputMayComeWithTheBlock(t *testing.T) {
	t.Parallel()
	got, err := hear(t, start,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input":{"a":1}}}`,
		end("tool_use"), stop)
	if err != nil || len(got.Calls) != 1 || string(got.Calls[0].Input) != `{"a":1}` {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestUsageMayComeAtTheEndOnly(t *testing.T) {
	t.Parallel()
	got, err := hear(t, `{"type":"message_start","message":{"id":"m"}}`, text,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":7,"cache_read_input_tokens":3,`+
			`"output_tokens":5}}`, stop)
	if diff := cmp.Diff(&model.Usage{InputTokens: 10, CachedTokens: 3, OutputTokens: 5}, got.Usage); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	got, err = hear(t, `{"type":"message_start","message":{"id":"m"}}`, text, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`,
		stop)
	if err != nil || got.Usage != nil {
		t.Errorf("%+v, %v", got.Usage, err)
	}
}
