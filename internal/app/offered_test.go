package app

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/workspace"
)

// TestModelsOfOtherProvidersAreRejected checks models against the providers of a configuration. The
// message and the violation list the models that the process has.
func TestModelsOfOtherProvidersAreRejected(t *testing.T) {
	t.Parallel()
	cfg := Config{AnthropicKey: "sk-ant", Model: "ollama/llama3.2"}
	check := modelCheck{cfg: cfg, here: true}.Check
	for name, ok := range map[string]bool{
		"": true, "anthropic/claude-sonnet-4-5": true, "anthropic/claude-next": true, "builtin/guide": true, "ollama/qwen3": true,
		"openai/gpt-5-mini": false, "builtin/other": false, "antropic/claude": false,
	} {
		err := check(t.Context(), uuid.Nil, workspace.Change{Model: &name})
		if (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
	problem := fault.From(check(t.Context(), uuid.Nil, workspace.Change{Model: new("openai/gpt-5-mini"), MaxTurns: new(0)}))
	if vs := problem.Detail.Violations; len(vs) != 2 || len(vs[0].Allowed) < 3 || !strings.Contains(vs[0].Message,
		"builtin/guide, ollama/llama3.2.") {
		t.Errorf("the violations are %+v", vs)
	}
	if list := strings.Join(cfg.OfferedModels(), " "); strings.Contains(list, "openai/") ||
		!strings.Contains(list, "anthropic/claude-sonnet-4-5") {
		t.Errorf("the models are %s", list)
	}
}
