package app

import (
	"fmt"
	"slices"
	"strings"

	agents "github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/workspace"
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

// checkOffered rejects a model that this process cannot call, as CheckModel does for all processes.
func (c Config) checkOffered(change workspace.Change) error {
	if err := CheckModel(change); err != nil || change.Model == nil || *change.Model == "" {
		return err
	}
	m, err := parseModel(*change.Model)
	if err != nil || c.hasProvider(m.provider) {
		return err
	}
	v := fault.Violation{Param: "/model", Rule: "enum"}
	for _, name := range c.OfferedModels() {
		v.Allowed = append(v.Allowed, name)
	}
	v.Message = fmt.Sprintf("This server has no provider %s, so it cannot call %q. Its models are %s.", m.provider, m, strings.Join(c.OfferedModels(), ", "))
	change.Model = nil
	return fault.Invalid(append([]fault.Violation{v}, change.Violations()...)...)
}
