package cli_test

import (
	"os"
	"path/filepath"
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
	sh.must("agent", "create", "support", "--fallback", "ollama/llama3.2,builtin/guide")
	if out := sh.must("agent", "show", "support"); !strings.Contains(out, `fallback_models: ["ollama/llama3.2","builtin/guide"]`) {
		t.Errorf("the agent: %s", out)
	}
	for given, want := range map[string]string{"none": "+fallback_models: []", "": "+fallback_models: null"} {
		sh.must("agent", "edit", "support", "--fallback", given)
		if out := sh.must("agent", "diff", "support"); !strings.Contains(out, want) {
			t.Errorf("--fallback %q: %s", given, out)
		}
	}
}

// TestUnpricedModelsNeedNoLimit checks each command that gives an agent a model and a limit in US
// dollars: the limit of a model without a known price could not be kept. The server knows the prices,
// not the environment of the command.
func TestUnpricedModelsNeedNoLimit(t *testing.T) {
	t.Parallel()
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(prices, []byte("models: [{name: ollama/priced, input_usd: 1, output_usd: 1}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	sh, _, _ := world(t, "PARLEY_PRICES="+prices, "OLLAMA_HOST=http://127.0.0.1:1")
	sh.must("agent", "create", "priced", "--model", "ollama/priced", "--max-cost", "1")
	sh.must("agent", "edit", "priced", "--max-cost", "2")
	sh.must("agent", "publish", "priced")
	sh.must("agent", "rollback", "priced", "--to", "1")
	if _, errs, code := sh.run("models", "test", "ollama/priced"); code != 1 || !strings.Contains(errs, "Cannot connect to ollama.") ||
		strings.Contains(errs, "parley models providers") {
		t.Errorf("a test of a provider of the server: exit code %d, %s", code, errs)
	}
	sh.must("agent", "edit", "--model", "ollama/llama3.2")
	sh.must("agent", "publish")
	sh.must("agent", "edit", "--model", "ollama/priced", "--max-cost", "0.5")
	sh.must("agent", "publish")
	sh.must("workspace", "update", "test", "--model", "ollama/priced")
	for _, command := range [][]string{
		{"agent", "create", "support", "--model", "ollama/llama3.2", "--max-cost", "1"},
		{"agent", "edit", "--model", "ollama/llama3.2"},
		{"workspace", "update", "test", "--model", "ollama/llama3.2"},
	} {
		if _, errs, code := sh.run(command...); code != 2 || !strings.Contains(errs, "price of the model ollama/llama3.2 is not known") ||
			!strings.Contains(errs, "PARLEY_PRICES") {
			t.Errorf("%q: exit code %d, %s", command, code, errs)
		}
	}
	if out := sh.must("agent", "list", "--json"); strings.Contains(out, "support") || !strings.Contains(out, "ollama/priced") {
		t.Errorf("the agents are %s", out)
	}
}

// TestRemovedProvidersAndSecretsNameTheirUsers checks that the commands ask before they break agents,
// and that the errors of names know the workspace's providers.
func TestRemovedProvidersAndSecretsNameTheirUsers(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	sh.must("secrets", "set", "LAB_KEY", "--host", "localhost:9977", "--allow-http", "--no-value")
	sh.must("models", "set", "lab", "--url", "http://localhost:9977/v1", "--secret", "LAB_KEY")
	sh.must("agent", "create", "support", "--model", "lab/llama")
	sh.must("models", "fallback", "lab/other")
	for command, want := range map[string]string{
		"models unset lab":                         "used by the agent support, the fallback models",
		"secrets delete LAB_KEY":                   "used by the model provider lab",
		"agent create sales --model lab":           `write lab/NAME`,
		"agent create sales --model lap/llama":     "did you mean lab/llama",
		"agent create sales --model nothing/llama": "a model's name is lab/NAME, openai/NAME",
		"models set gemini --kind gemini":          `--kind "gemini" is not a protocol`,
	} {
		if _, errs, code := sh.run(strings.Fields(command)...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %s", command, code, errs)
		}
	}
	sh.must("models", "unset", "lab", "--yes")
	sh.must("secrets", "delete", "LAB_KEY", "--yes")
}
