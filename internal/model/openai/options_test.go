package openai_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/parley-server/parley/internal/model"
)

// TestOptionsOfTheCaller checks the parameters on the wire, and that OpenAI's reasoning models get
// none that they reject.
func TestOptionsOfTheCaller(t *testing.T) {
	t.Parallel()
	half, seed := 0.5, int64(7)
	req := model.Request{Options: model.Options{Temperature: &half, TopP: &half, Stop: []string{"END"}, Seed: &seed}, MustCall: true,
		OneCall: true,
		Tools:   []model.Tool{{Name: "a", Schema: json.RawMessage(`{"type":"object"}`)}}}
	got, _ := sent(t, req)
	for name, want := range map[string]any{"temperature": json.Number("0.5"), "top_p": json.Number("0.5"), "seed": json.Number("7"),
		"stop": []any{"END"}, "tool_choice": "required", "parallel_tool_calls": false} {
		if !reflect.DeepEqual(got[name], want) {
			t.Errorf("%s = %v", name, got[name])
		}
	}
	if got, _ := sentToOpenAI(t, req); got["temperature"] != nil || got["top_p"] != nil || got["seed"] == nil {
		t.Errorf("%v", got)
	}
	req.Tools = nil
	if got, _ := sent(t, req); got["tool_choice"] != nil || got["parallel_tool_calls"] != nil {
		t.Errorf("without tools: %v", got)
	}
}
