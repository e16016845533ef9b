package model_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/model"
)

func writePrices(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFilesOfPricesReplaceEntries reads a file that prices a new model, changes a known one, and
// describes all models of a provider. Everything else is as the release has it.
func TestFilesOfPricesReplaceEntries(t *testing.T) {
	t.Parallel()
	c, err := model.ReadCatalog(writePrices(t, `models:
  - {name: openai/gpt-9, input_usd: 2, cached_input_usd: 0.5, cache_write_usd: 3, output_usd: 8, context_window: 1000000, max_output: 5000, date: 2026-11-01}
  - {name: openai/gpt-4o, input_usd: 9, output_usd: 10}
  - {name: openai/o3, context_window: 32000}
  - {name: ollama/*, input_usd: 0, output_usd: 0, context_window: 8192}
`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		rates          model.Rates
		window, output int
	}{
		"openai/gpt-9":            {model.Rates{Input: 2, CachedInput: 0.5, CacheWrite: 3, Output: 8}, 1_000_000, 5000},
		"openai/gpt-9-2026-12-24": {model.Rates{Input: 2, CachedInput: 0.5, CacheWrite: 3, Output: 8}, 1_000_000, 5000},
		"openai/gpt-4o":           {model.Rates{Input: 9, CachedInput: 9, CacheWrite: 9, Output: 10}, 128_000, 16_384},
		"openai/o3":               {model.Rates{Input: 2, CachedInput: 0.5, Output: 8}, 32_000, 100_000},
		"openai/gpt-5-mini":       {model.Rates{Input: 0.25, CachedInput: 0.025, Output: 2}, 400_000, 128_000},
		"ollama/llama3.2:3b":      {model.Rates{}, 8192, 0},
	} {
		rates, ok := c.Price(name)
		if !ok || rates != want.rates || c.Window(name) != want.window || c.MaxOutput(name) != want.output {
			t.Errorf("%s: %+v %t, window %d, output %d; want %+v", name, rates, ok, c.Window(name), c.MaxOutput(name), want)
		}
	}
	if e, _ := c.Find("openai/gpt-9"); e.Source != "PARLEY_PRICES" || e.Date != "2026-11-01" {
		t.Errorf("the new model is %+v", e)
	}
	var shipped *model.Catalog
	if _, ok := shipped.Price("openai/gpt-9"); ok || shipped.Window("openai/gpt-9") != model.DefaultWindow {
		t.Error("the catalog of the release has changed")
	}
}

// TestFilesOfPricesReportEveryProblem checks that a problem names the model and the remedy.
func TestFilesOfPricesReportEveryProblem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"models:\n  - {name: gpt-9}\n  - {name: a/b, input_usd: 1}\n  - {name: a/c, input_usd: -1, output_usd: 1}\n  - {name: a/d, " +
			"input_usd: .nan, output_usd: 1}\n": {
			`model 1 ("gpt-9"): its name`, `model 2 ("a/b"): a price has input_usd and output_usd`, `model 3 ("a/c"): a price is`,
			`model 4 ("a/d"): a price is`},
		"models:\n  - {name: a/b, context_window: -1}\n  - {name: a/c, date: today}\n  - {name: a/d}\n  - {name: a/d}\n": {
			"numbers of tokens", `its date "today" is not a day`, `model 4: "a/d" is listed twice`},
		"models:\n  - {name: a/b, context_window: 0}\n  - {name: a/c, max_output: 0}\n  - {name: a/d, date: 2026-13-01}\n": {
			"model 1", "numbers of tokens, from 1", "model 2", `its date "2026-13-01" is not a day`},
		"models:\n  - name: a/b\n    date: 2026-01\n   output_usd: 1": {"line 1 or after it: did not find"},
		"":                                 {"lists no models"},
		"models: []":                       {"lists no models"},
		"models:\n  - {name: a/b, usd: 1}": {`line 2: "usd" is not a field`, "input_usd"},
		"models:\n  - {name: a/b, input_usd: cheap}":    {`line 2: "cheap" is not a number`},
		"models:\n  - {name: a/b, context_window: big}": {`line 2: "big" is not a whole number`},
		"models:\n  a/b: {input_usd: 1}":                {`line 2: an object is not a list of models`},
		`{"models": [`:                                  {"not a file of prices"},
	} {
		_, err := model.ReadCatalog(writePrices(t, text))
		if err == nil {
			t.Errorf("%q is accepted", text)
			continue
		}
		for _, part := range []string{"struct", "float64", "!!", "unmarshal"} {
			if strings.Contains(err.Error(), part) {
				t.Errorf("%q: the error %q has %q", text, err, part)
			}
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: the error %q lacks %q", text, err, part)
			}
		}
	}
	if _, err := model.ReadCatalog(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("a missing file is accepted")
	}
}
