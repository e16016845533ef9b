package client

import (
	"context"
	"net/http"
)

// Model is a model with its limits in tokens and its prices in US dollars for a million tokens. A
// price that is not known is nil.
type Model struct {
	Name          string   `json:"name"` // PROVIDER/* describes every other model of a provider
	ContextWindow int      `json:"context_window"`
	MaxOutput     *int     `json:"max_output"` // nil: not known
	InputUSD      *float64 `json:"input_usd"`
	CachedUSD     *float64 `json:"cached_input_usd"`
	CacheWriteUSD *float64 `json:"cache_write_usd"`
	OutputUSD     *float64 `json:"output_usd"`
	Source        *string  `json:"source"` // of the entry; nil: there is none
	Date          *string  `json:"date"`
	InUse         bool     `json:"in_use"` // an agent of the workspace names it
}

// Models lists the models with known prices or limits, and those that the workspace uses.
func (a Admin) Models(ctx context.Context) ([]Model, error) {
	return listAll[Model](ctx, a, a.workspace(http.MethodGet, nil, "models"))
}
