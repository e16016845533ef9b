package admin

import (
	"cmp"
	"context"
	"slices"

	"github.com/parley-server/parley/internal/model"
)

// modelView is a model with its price, in US dollars per million tokens, and its limits in tokens. A
// price that is not known is null, and so is an unknown limit.
type modelView struct {
	Name          string   `json:"name"`
	ContextWindow int      `json:"context_window"`
	MaxOutput     *int     `json:"max_output"`
	Input         *float64 `json:"input_usd"`
	CachedInput   *float64 `json:"cached_input_usd"`
	CacheWrite    *float64 `json:"cache_write_usd"`
	Output        *float64 `json:"output_usd"`
	Source        *string  `json:"source"` // null: the catalog lacks the model
	Date          *string  `json:"date"`
	InUse         bool     `json:"in_use"` // by an agent of the workspace
}

func viewModel(name string, e model.Entry, inUse bool) modelView {
	v := modelView{Name: name, ContextWindow: cmp.Or(e.Window, model.DefaultWindow), MaxOutput: nilIfZero(e.MaxOutput),
		Source: nilIfZero(e.Source), Date: nilIfZero(e.Date), InUse: inUse}
	if r := e.Rates; r != nil {
		v.Input, v.CachedInput, v.CacheWrite, v.Output = &r.Input, &r.CachedInput, new(cmp.Or(r.CacheWrite, r.Input)), &r.Output
	}
	return v
}

func nilIfZero[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}

// listModels lists the models of the catalog, and those that the workspace uses without an entry.
func (s *api) listModels(ctx context.Context, c *call) (any, error) {
	used, err := s.usedModels(ctx, c)
	if err != nil {
		return nil, err
	}
	var list []modelView
	for _, e := range s.Catalog.Entries() {
		list = append(list, viewModel(e.Name, e, used[e.Name]))
		delete(used, e.Name)
	}
	for name := range used {
		e, _ := s.Catalog.Find(name)
		list = append(list, viewModel(name, e, true))
	}
	slices.SortFunc(list, func(a, b modelView) int { return cmp.Compare(a.Name, b.Name) })
	return paged(c, list, func(m modelView) string { return m.Name })
}

// usedModels returns the models that the agents of the workspace name.
func (s *api) usedModels(ctx context.Context, c *call) (map[string]bool, error) {
	list, err := s.Agents.List(ctx, c.Caller.Workspace.ID)
	if err != nil {
		return nil, err
	}
	used := make(map[string]bool)
	for _, a := range list {
		if name := cmp.Or(orZero(a.Model), s.DefaultModel); name != "" {
			used[name] = true
		}
	}
	return used, nil
}

func orZero[T any](value *T) (v T) {
	if value != nil {
		v = *value
	}
	return v
}
