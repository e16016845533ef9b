package client

import (
	"context"
	"net/http"
	"time"
)

// Agent is an agent of the workspace. Model, Author and Note are those of its published version. The
// ETag is its revision.
type Agent struct {
	Versioned
	Name        string    `json:"name"`
	Default     bool      `json:"default"` // it answers messages that name no agent
	Published   int       `json:"published_version"`
	Newest      int       `json:"newest_version"`
	Draft       bool      `json:"draft"` // it has a draft
	Revision    int64     `json:"revision"`
	Model       *string   `json:"model"`
	Author      string    `json:"author"`
	Note        string    `json:"note"`
	PublishedAt time.Time `json:"published_at"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// AgentDefinition is what a version of an agent consists of.
type AgentDefinition struct {
	Instructions string            `json:"instructions"`
	Model        *string           `json:"model"`            // provider/name; nil: the server's
	Effort       *string           `json:"effort"`           // minimal, low, medium or high; nil: the model's
	Fallbacks    []string          `json:"fallback_models"`  // answer in place of a model that fails; nil: those of the workspace
	Tools        map[string]string `json:"tools"`            // the offered tools, each read_only or changes; nil: every tool
	Rules        map[string]string `json:"rules"`            // allow, ask or deny by tool; nil: none
	Limits       *AgentLimits      `json:"limits,omitempty"` // nil in a change: those of a new agent
}

// AgentLimits are the limits of a turn.
type AgentLimits struct {
	MaxResponseSeconds int      `json:"max_response_seconds"`
	MaxTurns           int      `json:"max_turns"`      // model calls
	HistoryTokens      *int     `json:"history_tokens"` // of earlier turns, for the model; nil: as many as fit its window
	MaxCostUSD         *float64 `json:"max_cost_usd"`   // nil: no limit
}

// VersionOfAgent is a version of an agent. The draft is version 0, and its ETag is that of the agent.
type VersionOfAgent struct {
	Versioned
	Agent   string `json:"agent"`
	Version int    `json:"version"`
	AgentDefinition
	Author    string    `json:"author"`
	Note      string    `json:"note"`
	CreatedAt time.Time `json:"created_at"`
}

// Agents lists the agents of the workspace, the default one first.
func (a Admin) Agents(ctx context.Context) ([]Agent, error) {
	return listAll[Agent](ctx, a, a.workspace(http.MethodGet, nil, "agents"))
}

// Agent returns an agent.
func (a Admin) Agent(ctx context.Context, name string) (Agent, error) {
	return administer[Agent](ctx, a, a.workspace(http.MethodGet, nil, "agents", name))
}

// CreateAgent creates an agent and publishes its first version.
func (a Admin) CreateAgent(ctx context.Context, name string, d AgentDefinition, note string) (Agent, error) {
	in := struct {
		Name string `json:"name"`
		Note string `json:"note,omitempty"`
		AgentDefinition
	}{name, note, d}
	return administer[Agent](ctx, a, a.workspace(http.MethodPost, in, "agents"))
}

// PutAgent publishes a definition as the next version of an agent. The draft stays.
func (a Admin) PutAgent(ctx context.Context, name string, d AgentDefinition, note, etag string) (Agent, error) {
	in := struct {
		Note string `json:"note,omitempty"`
		AgentDefinition
	}{note, d}
	return administer[Agent](ctx, a, a.workspace(http.MethodPut, in, "agents", name).ifMatch(etag))
}

// DeleteAgent deletes an agent. The default agent cannot be deleted.
func (a Admin) DeleteAgent(ctx context.Context, name, etag string) error {
	_, err := administer[object](ctx, a, a.workspace(http.MethodDelete, nil, "agents", name).ifMatch(etag))
	return err
}

// AgentVersions lists the published versions of an agent, newest first. They have no definition.
func (a Admin) AgentVersions(ctx context.Context, name string) ([]VersionOfAgent, error) {
	return listAll[VersionOfAgent](ctx, a, a.workspace(http.MethodGet, nil, "agents", name, "versions"))
}

// AgentVersion returns a version of an agent: its number, published or draft.
func (a Admin) AgentVersion(ctx context.Context, name, version string) (VersionOfAgent, error) {
	return administer[VersionOfAgent](ctx, a, a.workspace(http.MethodGet, nil, "agents", name, "versions", version))
}

// PutAgentDraft replaces the draft of an agent. A draft that equals the published version is none:
// the response is the published version then.
func (a Admin) PutAgentDraft(ctx context.Context, name string, d AgentDefinition, etag string) (VersionOfAgent, error) {
	return administer[VersionOfAgent](ctx, a, a.workspace(http.MethodPut, d, "agents", name, "draft").ifMatch(etag))
}

// DeleteAgentDraft removes the draft of an agent.
func (a Admin) DeleteAgentDraft(ctx context.Context, name, etag string) error {
	_, err := administer[object](ctx, a, a.workspace(http.MethodDelete, nil, "agents", name, "draft").ifMatch(etag))
	return err
}

// PublishAgent makes the draft of an agent its next version.
func (a Admin) PublishAgent(ctx context.Context, name, note, etag string) (Agent, error) {
	return administer[Agent](ctx, a, a.workspace(http.MethodPost, noteBody(note), "agents", name, "publish").ifMatch(etag))
}

// RollbackAgent publishes an earlier version of an agent again.
func (a Admin) RollbackAgent(ctx context.Context, name string, version int, note, etag string) (Agent, error) {
	in := noteBody(note)
	in["version"] = version
	return administer[Agent](ctx, a, a.workspace(http.MethodPost, in, "agents", name, "rollback").ifMatch(etag))
}

func noteBody(note string) object {
	if note == "" {
		return object{}
	}
	return object{"note": note}
}
