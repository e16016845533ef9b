package model

// The source and the date of the catalog of this release.
const (
	shippedSource = "list prices of the providers"
	shippedDate   = "2026-03"
)

// shipped is the catalog of this release: the providers' list prices for ordinary requests, without
// batches, priority and surcharges for very long prompts.
var shipped = newShipped(map[string]Entry{
	"builtin/guide": shippedEntry(Rates{}, DefaultWindow, 0),

	"openai/gpt-5.2":           shippedEntry(Rates{1.75, 0.175, 14, 0}, 400_000, 128_000),
	"openai/gpt-5.1":           shippedEntry(Rates{1.25, 0.125, 10, 0}, 400_000, 128_000),
	"openai/gpt-5":             shippedEntry(Rates{1.25, 0.125, 10, 0}, 400_000, 128_000),
	"openai/gpt-5-mini":        shippedEntry(Rates{0.25, 0.025, 2, 0}, 400_000, 128_000),
	"openai/gpt-5-nano":        shippedEntry(Rates{0.05, 0.005, 0.40, 0}, 400_000, 128_000),
	"openai/gpt-4.1":           shippedEntry(Rates{2, 0.50, 8, 0}, 1_047_576, 32_768),
	"openai/gpt-4.1-mini":      shippedEntry(Rates{0.40, 0.10, 1.60, 0}, 1_047_576, 32_768),
	"openai/gpt-4.1-nano":      shippedEntry(Rates{0.10, 0.025, 0.40, 0}, 1_047_576, 32_768),
	"openai/gpt-4o":            shippedEntry(Rates{2.50, 1.25, 10, 0}, 128_000, 16_384),
	"openai/gpt-4o-2024-05-13": shippedEntry(Rates{5, 5, 15, 0}, 128_000, 4_096), // the first release, never made cheaper
	"openai/gpt-4o-mini":       shippedEntry(Rates{0.15, 0.075, 0.60, 0}, 128_000, 16_384),
	"openai/o1":                shippedEntry(Rates{15, 7.50, 60, 0}, 200_000, 100_000),
	"openai/o3":                shippedEntry(Rates{2, 0.50, 8, 0}, 200_000, 100_000),
	"openai/o3-mini":           shippedEntry(Rates{1.10, 0.55, 4.40, 0}, 200_000, 100_000),
	"openai/o4-mini":           shippedEntry(Rates{1.10, 0.275, 4.40, 0}, 200_000, 100_000),

	"anthropic/claude-opus-4-6":   shippedEntry(Rates{5, 0.50, 25, 6.25}, 200_000, 128_000),
	"anthropic/claude-opus-4-5":   shippedEntry(Rates{5, 0.50, 25, 6.25}, 200_000, 64_000),
	"anthropic/claude-opus-4-1":   shippedEntry(Rates{15, 1.50, 75, 18.75}, 200_000, 32_000),
	"anthropic/claude-opus-4":     shippedEntry(Rates{15, 1.50, 75, 18.75}, 200_000, 32_000),
	"anthropic/claude-opus-4-0":   shippedEntry(Rates{15, 1.50, 75, 18.75}, 200_000, 32_000),
	"anthropic/claude-sonnet-4-6": shippedEntry(Rates{3, 0.30, 15, 3.75}, 200_000, 64_000),
	"anthropic/claude-sonnet-4-5": shippedEntry(Rates{3, 0.30, 15, 3.75}, 200_000, 64_000),
	"anthropic/claude-sonnet-4":   shippedEntry(Rates{3, 0.30, 15, 3.75}, 200_000, 64_000),
	"anthropic/claude-sonnet-4-0": shippedEntry(Rates{3, 0.30, 15, 3.75}, 200_000, 64_000),
	"anthropic/claude-3-7-sonnet": shippedEntry(Rates{3, 0.30, 15, 3.75}, 200_000, 64_000),
	"anthropic/claude-3-5-sonnet": shippedEntry(Rates{3, 0.30, 15, 3.75}, 200_000, 8_192),
	"anthropic/claude-haiku-4-5":  shippedEntry(Rates{1, 0.10, 5, 1.25}, 200_000, 64_000),
	"anthropic/claude-3-5-haiku":  shippedEntry(Rates{0.80, 0.08, 4, 1}, 200_000, 8_192),
	"anthropic/claude-3-haiku":    shippedEntry(Rates{0.25, 0.03, 1.25, 0.30}, 200_000, 4_096),
})

func shippedEntry(r Rates, window, output int) Entry {
	return Entry{Rates: &r, Window: window, MaxOutput: output, Source: shippedSource, Date: shippedDate}
}

func newShipped(entries map[string]Entry) *Catalog {
	for name, e := range entries {
		e.Name = name
		entries[name] = e
	}
	return &Catalog{entries}
}
