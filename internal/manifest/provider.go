package manifest

import (
	"context"
	"time"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/store/modelset"
)

// Provider is a provider of models. What is left out has its default.
type Provider struct {
	Kind    string `yaml:"kind,omitempty"`
	URL     string `yaml:"url,omitempty"`
	Secret  string `yaml:"secret,omitempty"`          // name of the secret that is its key
	Timeout int    `yaml:"timeout_seconds,omitempty"` // the longest silence of a reply
}

// complete returns the provider with the values that the server gives it.
func (p Provider) complete(name string) Provider {
	full := modelset.Provider{Name: name, Kind: modelset.Kind(p.Kind), BaseURL: p.URL,
		Timeout: time.Duration(p.Timeout) * time.Second}.Complete()
	return Provider{string(full.Kind), full.BaseURL, p.Secret, int(full.Timeout / time.Second)}
}

// change converts a complete provider.
func (p Provider) change() client.ModelProviderChange {
	c := client.ModelProviderChange{Kind: &p.Kind, BaseURL: &p.URL, Timeout: &p.Timeout}
	if p.Secret != "" {
		c.Credential = &p.Secret
	}
	return c
}

func (f *File) readProviders(ctx context.Context, a client.Admin) error {
	list, err := a.ModelProviders(ctx)
	if err != nil {
		return err
	}
	f.Providers = make(map[string]Provider)
	for _, p := range list {
		own := Provider{Kind: p.Kind, URL: p.BaseURL, Timeout: p.Timeout}
		if p.Credential != nil {
			own.Secret = *p.Credential
		}
		f.Providers[p.Name] = own
	}
	return nil
}
