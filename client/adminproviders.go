package client

import (
	"context"
	"net/http"
	"time"
)

// ModelProvider is a provider of models that a workspace has added.
type ModelProvider struct {
	Name       string    `json:"name"`
	Kind       string    `json:"kind"` // openai or anthropic: the protocol
	BaseURL    string    `json:"base_url"`
	Credential *string   `json:"credential"` // name of the credential that is the key; nil: no key
	Timeout    int       `json:"timeout_seconds"`
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
}

// ModelProviders lists the providers that the workspace has added.
func (a Admin) ModelProviders(ctx context.Context) ([]ModelProvider, error) {
	return listAll[ModelProvider](ctx, a, a.workspace(http.MethodGet, nil, "model-providers"))
}

// ModelProviderChange describes a provider. A nil field has its default.
type ModelProviderChange struct {
	Kind       *string
	BaseURL    *string
	Credential *string
	Timeout    *int
}

// PutModelProvider adds or replaces a provider.
func (a Admin) PutModelProvider(ctx context.Context, name string, change ModelProviderChange) (ModelProvider, error) {
	in := make(object)
	put(in, "kind", change.Kind)
	put(in, "base_url", change.BaseURL)
	put(in, "credential", change.Credential)
	put(in, "timeout_seconds", change.Timeout)
	return administer[ModelProvider](ctx, a, a.workspace(http.MethodPut, in, "model-providers", name))
}

// DeleteModelProvider removes a provider.
func (a Admin) DeleteModelProvider(ctx context.Context, name string) error {
	_, err := administer[object](ctx, a, a.workspace(http.MethodDelete, nil, "model-providers", name))
	return err
}

// ModelTest is the result of a short request to a model.
type ModelTest struct {
	Model        string  `json:"model"`
	OK           bool    `json:"ok"`
	Milliseconds int64   `json:"milliseconds"`
	Error        *string `json:"error"`
}

// TestModel sends a short request to a model.
func (a Admin) TestModel(ctx context.Context, name string) (ModelTest, error) {
	return administer[ModelTest](ctx, a, a.workspace(http.MethodPost, object{"model": name}, "models", "test"))
}
