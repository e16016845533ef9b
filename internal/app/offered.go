package app

import (
	"slices"
	"strings"

	agents "github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/agent"
)

// hasProvider reports whether this process is configured for a provider. Ollama needs no key.
func (c Config) hasProvider(name string) bool {
	switch name {
	case "openai":
		return c.OpenAIKey != "" || c.OpenAIBaseURL != ""
	case "anthropic":
		return c.AnthropicKey != "" || c.AnthropicBase != ""
	}
	return true
}

// OfferedModels returns the models that an agent can name, sorted: those with a price of the
// configured providers, and the default model. A provider may have more.
func (c Config) OfferedModels() []string {
	name, _ := c.DefaultModel()
	list := []string{name}
	for _, e := range c.catalog.Entries() {
		if provider, name, _ := strings.Cut(e.Name, "/"); name != "*" && c.hasProvider(provider) {
			list = append(list, e.Name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// defaultModel returns the model of agents that name none.
func (s *service) defaultModel() string {
	name, _ := s.Config.DefaultModel()
	return name
}

// checkCost rejects a definition of an agent with a limit in US dollars for a model without a known
// price.
func (c Config) checkCost(d agent.Definition) error {
	if d.Limits.MaxCostUSD == nil {
		return nil
	}
	name, _ := c.DefaultModel()
	if d.Model != nil {
		name = *d.Model
	}
	if _, known := c.catalog.Price(name); known {
		return nil
	}
	return fault.Invalid(fault.Violation{Param: "/limits/max_cost_usd", Rule: "unknown", Message: agents.UnknownPrice(name, "the agent")})
}
