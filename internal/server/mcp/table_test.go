package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/wiki"
)

// TestToolsSayWhatTheyAre checks that every tool has the descriptions and annotations that clients
// and models use, and that the documented bounds are the enforced ones.
func TestToolsSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	inputs := make(map[string]map[string]any)
	writes := map[string]bool{"send_message": true, "decide_approval": true, "cancel_session": true, "save_wiki": true}
	for tool, err := range s.connect(t, s.key, nil).Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		a := tool.Annotations
		if tool.Title == "" || tool.Description == "" || a == nil || a.DestructiveHint == nil || a.OpenWorldHint == nil ||
			a.Title != tool.Title || a.ReadOnlyHint == writes[tool.Name] ||
			*a.DestructiveHint != writes[tool.Name] {
			t.Errorf("%s: %q, %q, %+v", tool.Name, tool.Title, tool.Description, a)
		}
		in := tool.InputSchema.(map[string]any)
		compile(t, tool.InputSchema)
		compile(t, tool.OutputSchema)
		if in["additionalProperties"] != false {
			t.Errorf("%s takes anything", tool.Name)
		}
		inputs[tool.Name], _ = in["properties"].(map[string]any)
		for name, p := range inputs[tool.Name] {
			if p.(map[string]any)["type"] == nil || p.(map[string]any)["description"] == nil {
				t.Errorf("%s: %s has too short a description", tool.Name, name)
			}
		}
	}
	for place, want := range map[[3]string]int{
		{"send_message", "command", "maxLength"}: request.MaxCommand, {"send_message", "skill", "maxLength"}: request.MaxName,
		{"send_message", "secret_input", "maxItems"}: request.MaxSecrets,
		{"send_message", "attachments", "maxItems"}:  request.MaxAttachments, {"send_message", "caller_id", "maxLength"}: request.MaxCallerID,
		{"send_message", "idempotency_key", "maxLength"}: request.MaxIdempotencyKey, {"decide_approval", "reason",
			"maxLength"}: request.MaxReason,
		{"decide_approval", "allowlist_pattern", "maxLength"}: request.MaxPattern, {"wiki_read", "page", "maxLength"}: wiki.MaxPath,
	} {
		p, _ := inputs[place[0]][place[1]].(map[string]any)
		if got := fmt.Sprint(p[place[2]]); got != fmt.Sprint(float64(want)) && got != fmt.Sprint(want) {
			t.Errorf("%v is %s, and %d is enforced", place, got, want)
		}
	}
	limits, _ := json.Marshal(inputs["send_message"]["limits"])
	want := fmt.Sprintf(
		`"max_cost_usd":{"maximum":%d,"minimum":0,"type":"number"},"max_response_seconds":{"maximum":%d,"minimum":1,"type":"integer"},`+
			`"max_turns":{"maximum":%d,"minimum":1,"type":"integer"}`,
		request.MaxCost, request.MaxResponseSeconds, request.MaxTurns)
	if got := string(limits); !strings.Contains(got, want) {
		t.Errorf("limits are %s, and %s is enforced", got, want)
	}
}
