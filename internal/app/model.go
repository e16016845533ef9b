package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/anthropic"
	"github.com/parley-server/parley/internal/model/openai"
	"github.com/parley-server/parley/internal/model/provider"
	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/store/modelset"
	"github.com/parley-server/parley/internal/store/workspace"
)

// The default models of a provider that is configured without a model.
const (
	defaultOpenAI    = "openai/gpt-5-mini"
	defaultAnthropic = "anthropic/claude-sonnet-4-5"
	defaultOllama    = "ollama/llama3.2"
	builtinGuide     = "builtin/guide"
)

// modelName is the two parts of a model's full name, such as "ollama/llama3.2:3b": all text after
// the first slash is the provider's own name.
type modelName struct{ provider, name string }

func (m modelName) String() string { return m.provider + "/" + m.name }

const (
	builtInProvider = "builtin"
	ollamaKey       = "the server, which Parley sends no key" // in messages about a key
)

var modelProviders = []string{"openai", "anthropic", "ollama", builtInProvider}

// parseModel parses the name of a model of the server. own are the names of the workspace's providers,
// for its error.
func parseModel(full string, own ...string) (modelName, error) {
	provider, name, ok := strings.Cut(full, "/")
	m := modelName{provider, name}
	known := slices.Concat(own, modelProviders)
	if name == "" && slices.Contains(known, provider) {
		return m, fmt.Errorf("%q is a provider, not a model; write %s/NAME", full, provider)
	}
	switch provider {
	case "openai", "anthropic", "ollama":
		if ok && name != "" {
			return m, nil
		}
	case builtInProvider:
		if name == "guide" {
			return m, nil
		}
		return m, fmt.Errorf("unknown model %q; the built-in one is builtin/guide", full)
	}
	if near := search.Nearest(provider, known, 1); len(near) > 0 && near[0] != provider {
		return m, fmt.Errorf("unknown model %q; did you mean %s/%s?", full, near[0], name)
	}
	forms := []string{"openai/NAME", "anthropic/NAME", "ollama/NAME"}
	for _, name := range slices.Backward(own) {
		if form := name + "/NAME"; !slices.Contains(forms, form) {
			forms = append([]string{form}, forms...)
		}
	}
	return m, fmt.Errorf("unknown model %q; a model's name is %s or builtin/guide. parley models set adds a provider", full,
		strings.Join(forms, ", "))
}

// DefaultModel returns the model of workspaces that name none, and the reason for it.
func (c Config) DefaultModel() (name, because string) {
	switch {
	case c.Model != "":
		return c.Model, "PARLEY_MODEL"
	case c.OpenAIKey != "":
		return defaultOpenAI, "OPENAI_API_KEY is set"
	case c.OpenAIBaseURL != "":
		return defaultOpenAI, "OPENAI_BASE_URL is set"
	case c.AnthropicKey != "":
		return defaultAnthropic, "ANTHROPIC_API_KEY is set"
	case c.AnthropicBase != "":
		return defaultAnthropic, "ANTHROPIC_BASE_URL is set"
	case c.OllamaHost != "":
		return defaultOllama, "OLLAMA_HOST is set"
	}
	return builtinGuide, "no key is set"
}

// models resolves full names to models. It caches one of each of the server's.
type models struct {
	cfg        Config
	client     *http.Client // of the server's providers
	guide      func() (model.Model, error)
	workspaces *workspace.Store
	own        ownProviders

	mu   sync.Mutex
	open map[string]model.Model
}

func newModels(cfg Config, guide func() (model.Model, error), workspaces *workspace.Store, own ownProviders) *models {
	client := provider.Client(nil)
	if client.Transport != nil && cfg.ModelTimeout > 0 {
		client.Transport = timedTransport{client.Transport, silence{cfg.ModelTimeout, "PARLEY_MODEL_TIMEOUT"}}
	}
	return &models{cfg: cfg, client: client, guide: guide, workspaces: workspaces, own: own, open: make(map[string]model.Model)}
}

// Model returns a model of a workspace by its full name. A provider of the workspace precedes one of
// the server with the same name.
func (m *models) Model(ctx context.Context, id uuid.UUID, full string) (model.Model, error) {
	ws, err := m.workspaces.Recent(ctx, id)
	if err != nil {
		return nil, err
	}
	if !ws.HasProviders {
		return m.ofServer(full)
	}
	list, err := m.own.store.List(ctx, id)
	if err != nil {
		return nil, err
	}
	provider, name, _ := strings.Cut(full, "/")
	for _, p := range list {
		if p.Name == provider && name != "" {
			return m.own.open(id, p, name), nil
		}
	}
	return m.ofServer(full, modelset.Names(list)...)
}

// ofServer returns a model of the server's providers. own is for parseModel.
func (m *models) ofServer(full string, own ...string) (model.Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if opened, ok := m.open[full]; ok {
		return opened, nil
	}
	opened, err := m.makeModel(full, own...)
	if err != nil {
		return nil, err
	}
	m.open[full] = opened
	return opened, nil
}

func (m *models) makeModel(full string, own ...string) (model.Model, error) {
	name, err := parseModel(full, own...)
	if err != nil {
		return nil, err
	}
	switch name.provider {
	case "openai":
		if m.cfg.OpenAIKey == "" && m.cfg.OpenAIBaseURL == "" {
			return nil, fmt.Errorf("the model %s needs OPENAI_API_KEY", full)
		}
		return openai.New(openai.Config{Model: name.name, APIKey: m.cfg.OpenAIKey.Reveal(), BaseURL: m.cfg.OpenAIBaseURL,
			HTTPClient: m.client, Background: m.cfg.OpenAIBackground}), nil
	case "anthropic":
		if m.cfg.AnthropicKey == "" && m.cfg.AnthropicBase == "" {
			return nil, fmt.Errorf("the model %s needs ANTHROPIC_API_KEY", full)
		}
		return anthropic.New(anthropic.Config{Model: name.name, APIKey: m.cfg.AnthropicKey.Reveal(), BaseURL: m.cfg.AnthropicBase,
			HTTPClient: m.client}), nil
	case "ollama":
		base, err := ollamaURL(m.cfg.OllamaHost)
		if err != nil {
			return nil, err
		}
		return openai.New(openai.Config{Model: name.name, BaseURL: base, Provider: "ollama", HTTPClient: m.client, KeyName: ollamaKey,
			URLName: "OLLAMA_HOST"}), nil
	}
	return m.guide()
}

// ollamaURL is the address of Ollama's Chat Completions API. OLLAMA_HOST is parsed as Ollama parses
// it: the scheme and the port may be missing, and 0.0.0.0 means this machine.
func ollamaURL(host string) (string, error) {
	if host == "" {
		host = "127.0.0.1:11434"
	}
	bare := !strings.Contains(host, "://")
	if bare {
		host = "http://" + host
	}
	u, err := url.Parse(host)
	if err != nil || u.Hostname() == "" {
		return "", errors.New("OLLAMA_HOST is not an address such as http://127.0.0.1:11434")
	}
	name, port := u.Hostname(), u.Port()
	if name == "0.0.0.0" {
		name = "127.0.0.1"
	}
	switch {
	case port != "":
		u.Host = net.JoinHostPort(name, port)
	case bare:
		u.Host = net.JoinHostPort(name, "11434")
	}
	return u.JoinPath("v1").String(), nil
}
