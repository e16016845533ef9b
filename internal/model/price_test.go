package model_test

import (
	"math"
	"testing"

	"github.com/parley-server/parley/internal/model"
)

// release is the catalog of this release.
var release *model.Catalog

func TestPriceKnowsModelsAndTheirDatedReleases(t *testing.T) {
	t.Parallel()
	for name, input := range map[string]float64{
		"openai/gpt-4o":                        2.50,
		"openai/gpt-4o-2024-08-06":             2.50,
		"openai/gpt-4o-2024-05-13":             5,
		"openai/gpt-5-mini":                    0.25,
		"openai/gpt-5-mini-2025-08-07":         0.25,
		"anthropic/claude-sonnet-4-5-20250929": 3,
		"anthropic/claude-opus-4-20250514":     15,
		"anthropic/claude-3-5-haiku-latest":    0.80,
		"builtin/guide":                        0,
	} {
		r, ok := release.Price(name)
		if !ok || r.Input != input {
			t.Errorf("Price(%q) = %v, %t; want input at %v", name, r, ok, input)
		}
	}
}

func TestPriceGuessesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", "gpt-4o", "openai/", "openai/gpt-4o-audio-preview", "openai/gpt-5-minimal",
		"openai/gpt-4o-2024-08-06-custom", "ollama/gpt-4o", "ollama/llama3.2", "anthropic/claude-opus-4-2",
	} {
		if r, ok := release.Price(name); ok {
			t.Errorf("Price(%q) = %v, want none", name, r)
		}
		if c := release.Cost(name, model.Usage{InputTokens: 1}); c != nil {
			t.Errorf("Cost(%q) = %v, want nil", name, *c)
		}
	}
}

func TestCostCountsCachedTokensAtTheirOwnRate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		u    model.Usage
		want float64
	}{
		{"openai/gpt-4o", model.Usage{InputTokens: 1_000_000, OutputTokens: 100_000}, 3.50},
		{"openai/gpt-4o", model.Usage{InputTokens: 1_000_000, CachedTokens: 400_000, OutputTokens: 100_000}, 3.00},
		{"openai/gpt-4o", model.Usage{InputTokens: 10, CachedTokens: 99}, 10 * 1.25 / 1e6},
		{"anthropic/claude-haiku-4-5", model.Usage{InputTokens: 2914, OutputTokens: 388}, 0.004854},
		{"anthropic/claude-haiku-4-5", model.Usage{InputTokens: 1000, CachedTokens: 600, CacheWriteTokens: 300, OutputTokens: 10}, 0.000585},
		{"openai/gpt-4o", model.Usage{InputTokens: 1000, CacheWriteTokens: 300}, 0.0025},
		{"builtin/guide", model.Usage{InputTokens: 5000, OutputTokens: 5000}, 0},
	} {
		got := release.Cost(c.name, c.u)
		if got == nil || math.Abs(*got-c.want) > 1e-12 {
			t.Errorf("Cost(%q, %+v) = %v, want %v", c.name, c.u, got, c.want)
		}
	}
}
