package model

import "regexp"

// Rates are a provider's prices for tokens, in US dollars per million.
type Rates struct {
	Input       float64
	CachedInput float64 // input that the provider read from its cache
	Output      float64
}

// prices are the providers' list prices of March 2026 for ordinary requests: no batches, no
// priority, no surcharge for very long prompts. A model that is not listed has no known price.
var prices = map[string]Rates{
	"builtin/guide": {},

	"openai/gpt-5.2":           {1.75, 0.175, 14},
	"openai/gpt-5.1":           {1.25, 0.125, 10},
	"openai/gpt-5":             {1.25, 0.125, 10},
	"openai/gpt-5-mini":        {0.25, 0.025, 2},
	"openai/gpt-5-nano":        {0.05, 0.005, 0.40},
	"openai/gpt-4.1":           {2, 0.50, 8},
	"openai/gpt-4.1-mini":      {0.40, 0.10, 1.60},
	"openai/gpt-4.1-nano":      {0.10, 0.025, 0.40},
	"openai/gpt-4o":            {2.50, 1.25, 10},
	"openai/gpt-4o-2024-05-13": {5, 5, 15}, // the first release, never made cheaper
	"openai/gpt-4o-mini":       {0.15, 0.075, 0.60},
	"openai/o1":                {15, 7.50, 60},
	"openai/o3":                {2, 0.50, 8},
	"openai/o3-mini":           {1.10, 0.55, 4.40},
	"openai/o4-mini":           {1.10, 0.275, 4.40},

	"anthropic/claude-opus-4-6":   {5, 0.50, 25},
	"anthropic/claude-opus-4-5":   {5, 0.50, 25},
	"anthropic/claude-opus-4-1":   {15, 1.50, 75},
	"anthropic/claude-opus-4":     {15, 1.50, 75},
	"anthropic/claude-opus-4-0":   {15, 1.50, 75},
	"anthropic/claude-sonnet-4-6": {3, 0.30, 15},
	"anthropic/claude-sonnet-4-5": {3, 0.30, 15},
	"anthropic/claude-sonnet-4":   {3, 0.30, 15},
	"anthropic/claude-sonnet-4-0": {3, 0.30, 15},
	"anthropic/claude-3-7-sonnet": {3, 0.30, 15},
	"anthropic/claude-3-5-sonnet": {3, 0.30, 15},
	"anthropic/claude-haiku-4-5":  {1, 0.10, 5},
	"anthropic/claude-3-5-haiku":  {0.80, 0.08, 4},
	"anthropic/claude-3-haiku":    {0.25, 0.03, 1.25},
}

// dated matches the suffix of one release of a model: gpt-4o-2024-08-06,
// claude-sonnet-4-5-20250929, claude-3-5-haiku-latest.
var dated = regexp.MustCompile(`-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$`)

// Price returns the price of a model by its full name. A dated release without its own price costs
// as much as its model.
func Price(name string) (Rates, bool) {
	if r, ok := prices[name]; ok {
		return r, true
	}
	r, ok := prices[dated.ReplaceAllString(name, "")]
	return r, ok
}

// Cost returns the price of one request in US dollars, or nil for a model without a known price.
func Cost(name string, u Usage) *float64 {
	r, ok := Price(name)
	if !ok {
		return nil
	}
	cached := min(u.CachedTokens, u.InputTokens)
	fresh := u.InputTokens - cached
	return new((float64(fresh)*r.Input + float64(cached)*r.CachedInput + float64(u.OutputTokens)*r.Output) / 1e6)
}
