package admin

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/modelset"
	"github.com/parley-server/parley/internal/store/vault"
)

// providerView is a provider of models in a response. It names its key, and has no value of one.
type providerView struct {
	Name       string        `json:"name"`
	Kind       modelset.Kind `json:"kind"`
	BaseURL    string        `json:"base_url"`
	Credential *string       `json:"credential"` // null: no key
	Timeout    int           `json:"timeout_seconds"`
	CreatedAt  time.Time     `json:"created_at"`
	UpdatedAt  time.Time     `json:"updated_at"`
}

func viewProvider(p modelset.Provider) providerView {
	return providerView{p.Name, p.Kind, p.BaseURL, nilIfZero(p.Credential), int(p.Timeout / time.Second), p.CreatedAt.UTC(), p.UpdatedAt.UTC()}
}

func (s *api) listModelProviders(ctx context.Context, c *call) (any, error) {
	list, err := s.Modelset.List(ctx, c.Caller.Workspace.ID)
	if err != nil {
		return nil, err
	}
	views := make([]providerView, len(list))
	for i, p := range list {
		views[i] = viewProvider(p)
	}
	return paged(c, views, func(v providerView) string { return v.Name })
}

// putModelProvider adds or replaces a provider.
func (s *api) putModelProvider(ctx context.Context, c *call) (any, error) {
	c.notNull("kind", "base_url", "timeout_seconds")
	p := modelset.Provider{Name: c.PathValue("provider"), Kind: modelset.Kind(c.body.Enum("kind", string(modelset.OpenAI),
		string(modelset.Anthropic)))}
	p.BaseURL, p.Credential = c.body.String("base_url", 2048), c.body.String("credential", 64)
	p.Timeout = time.Duration(c.body.Int("timeout_seconds", 0, 1, int(modelset.MaxTimeout/time.Second))) * time.Second
	if err := c.Err(); err != nil {
		return nil, err
	}
	p, err := s.SetModelProvider(ctx, c.Caller.Workspace.ID, p)
	return viewProvider(p), err
}

// SetModelProvider adds or replaces a provider, if its key may be sent to it.
func (s Stores) SetModelProvider(ctx context.Context, workspace uuid.UUID, p modelset.Provider) (modelset.Provider, error) {
	p, err := s.Modelset.Check(p)
	if err != nil {
		return p, err
	}
	if err := s.checkProviderKey(ctx, workspace, p); err != nil {
		return p, err
	}
	return s.Modelset.Set(ctx, workspace, p)
}

// checkProviderKey rejects a credential that does not exist, or that may not be sent to the
// provider. Its value can be set later.
func (s Stores) checkProviderKey(ctx context.Context, workspace uuid.UUID, p modelset.Provider) error {
	if p.Credential == "" {
		return nil
	}
	list, err := s.Vault.List(ctx, workspace)
	if err != nil {
		return err
	}
	to, err := url.Parse(p.BaseURL)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(c vault.Credential) bool { return c.Name == p.Credential })
	if i >= 0 && list[i].MayReach(to) {
		return nil
	}
	v := fault.Violation{Param: "/credential", Rule: "unknown",
		Message: fmt.Sprintf("The workspace has no secret %s. Create it: parley secrets set %[1]s %s", p.Credential, vault.HostFlags(to))}
	if i >= 0 {
		v.Rule, v.Message = "requires", fmt.Sprintf("The secret %s may not be sent to %s. Set it again: parley secrets set %[1]s %[3]s",
			p.Credential, to.Host, vault.HostFlags(to))
	}
	return fault.Invalid(v)
}

func (s *api) deleteModelProvider(ctx context.Context, c *call) (any, error) {
	name := c.PathValue("provider")
	return deleted{name, true}, s.Modelset.Remove(ctx, c.Caller.Workspace.ID, name)
}

// ModelTest is the result of a short request to a model.
type ModelTest struct {
	Model        string  `json:"model"`
	OK           bool    `json:"ok"`
	Milliseconds int64   `json:"milliseconds"`
	Error        *string `json:"error"` // for administrators
}

func (s *api) testModel(ctx context.Context, c *call) (any, error) {
	name := c.body.RequiredString("model", 200)
	if err := c.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ModelTestTime)
	defer cancel()
	return s.TestModel(ctx, c.Caller.Workspace.ID, name)
}

// ModelTestTime limits a request that tests a model.
const ModelTestTime = 30 * time.Second
