package cli_test

import (
	"strings"
	"testing"
)

// TestFallbackModelsAreAList checks that the command takes several models.
func TestFallbackModelsAreAList(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	sh.must("models", "fallback", "builtin/guide", "ollama/llama3.2")
	if out := sh.must("models", "fallback"); !strings.Contains(out, "builtin/guide\n") || !strings.Contains(out, "ollama/llama3.2") {
		t.Errorf("the list: %s", out)
	}
}
