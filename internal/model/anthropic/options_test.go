package anthropic_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/parley-server/parley/internal/model"
)

// TestOptionsOfTheCaller checks the parameters on the wire: the protocol has another scale of
// temperatures, and new models reject top_p beside one.
func TestOptionsOfTheCaller(t *testing.T) {
	t.Parallel()
	hot, half := 1.5, 0.5
	req := model.Request{Options: model.Options{Temperature: &hot, TopP: &half, Stop: []string{"END"}}, MustCall: true, OneCall: true,
		Tools: []model.Tool{{Name: "a", Schema: json.RawMessage(`{"type":"object"}`)}}}
	got, _ := sent(t, req)
	for name, want := range map[string]any{"temperature": json.Number("1"), "top_p": nil, "stop_sequences": []any{"END"},
		"tool_choice": map[string]any{"type": "any", "disable_parallel_tool_use": true}} {
		if !reflect.DeepEqual(got[name], want) {
			t.Errorf("%s = %v", name, got[name])
		}
	}
	req.Options.Temperature, req.MustCall = nil, false
	got, _ = sent(t, req)
	if !reflect.DeepEqual(got["tool_choice"], map[string]any{"type": "auto", "disable_parallel_tool_use": true}) ||
		got["top_p"] != json.Number("0.5") {
		t.Errorf("%v", got)
	}
	req.Tools = nil
	if got, _ := sent(t, req); got["tool_choice"] != nil {
		t.Errorf("without tools: %v", got)
	}
}
