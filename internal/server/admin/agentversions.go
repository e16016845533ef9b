package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/workspace"
)

// definitionFields are the members of a version. Those that are left out have the values of a new
// agent.
var definitionFields = []string{"instructions", "model", "effort", "fallback_models", "tools", "rules", "limits"}

// versionView is a version of an agent, or its draft.
type versionView struct {
	Agent   string `json:"agent"`
	Version *int   `json:"version"` // null: the draft
	agent.Definition
	Author    string    `json:"author"`
	Note      string    `json:"note"`
	CreatedAt time.Time `json:"created_at"`
}

func viewVersion(a agent.Agent, v agent.Version) versionView {
	view := versionView{Agent: a.Name, Definition: v.Definition, Author: v.Author, Note: v.Note, CreatedAt: v.CreatedAt.UTC()}
	if v.Number > 0 {
		view.Version = &v.Number
	}
	return view
}

func (s *api) getAgentVersion(ctx context.Context, c *call) (any, error) {
	a, err := s.findAgent(ctx, c)
	if err != nil {
		return nil, err
	}
	v, err := s.namedVersion(ctx, c, a, c.PathValue("version"))
	return viewVersion(a, v), err
}

// namedVersion returns a version by its number, "draft" or "published".
func (s *api) namedVersion(ctx context.Context, c *call, a agent.Agent, name string) (agent.Version, error) {
	which, ok := agent.ParseWhich(name)
	if !ok {
		return agent.Version{}, notFound("version of the agent "+a.Name, name)
	}
	v, err := s.Agents.Version(ctx, a, which)
	return v, c.agentError(err)
}

func (s *api) getAgentDraft(ctx context.Context, c *call) (any, error) {
	a, err := s.findAgent(ctx, c)
	if err != nil {
		return nil, err
	}
	v, err := s.Agents.Version(ctx, a, agent.Draft)
	return tagged{viewVersion(a, v), tagRevision(a)}, c.agentError(err)
}

// putAgentDraft replaces the draft. The response is the published version if it equals that.
func (s *api) putAgentDraft(ctx context.Context, c *call) (any, error) {
	d := c.definition()
	if err := s.acceptDefinition(ctx, c, d); err != nil {
		return nil, err
	}
	e, err := c.agentEdit()
	if err != nil {
		return nil, err
	}
	a, err := s.Agents.SaveDraft(ctx, e, func(agent.Definition) (agent.Definition, error) { return d, nil })
	if err != nil {
		return nil, c.agentError(err)
	}
	which := agent.Published
	if a.HasDraft {
		which = agent.Draft
	}
	v, err := s.Agents.Version(ctx, a, which)
	return tagged{viewVersion(a, v), tagRevision(a)}, err
}

func (s *api) deleteAgentDraft(ctx context.Context, c *call) (any, error) {
	e, err := c.agentEdit()
	if err != nil {
		return nil, err
	}
	_, err = s.Agents.DropDraft(ctx, e)
	return deleted{e.Name, true}, c.agentError(err)
}

// diffView is the difference of two versions.
type diffView struct {
	From  *int       `json:"from"` // null: the draft
	To    *int       `json:"to"`
	Lines []diffLine `json:"lines"`
}

type diffLine struct {
	Op   string `json:"op"` // same, removed or added
	Text string `json:"text"`
}

var diffOps = map[byte]string{' ': "same", '-': "removed", '+': "added"}

// diffAgent compares two versions, by default the published one with the draft.
func (s *api) diffAgent(ctx context.Context, c *call) (any, error) {
	a, err := s.findAgent(ctx, c)
	if err != nil {
		return nil, err
	}
	var versions [2]agent.Version
	for i, p := range []struct{ name, usual string }{{"from", "published"}, {"to", "draft"}} {
		if versions[i], err = s.namedVersion(ctx, c, a, cmp.Or(c.query.Text(p.name), p.usual)); err != nil {
			return nil, err
		}
	}
	d := diffView{viewVersion(a, versions[0]).Version, viewVersion(a, versions[1]).Version, []diffLine{}}
	for _, line := range agent.Diff(versions[0].Definition, versions[1].Definition) {
		d.Lines = append(d.Lines, diffLine{diffOps[line.Op], line.Text})
	}
	return d, nil
}

// definition parses the members of a version. The store checks their values.
func (c *call) definition() agent.Definition {
	d := agent.Defaults()
	if text := c.optionalText("instructions"); text != nil {
		d.Instructions = *text
	}
	d.Model, d.Effort, d.Rules = c.optionalText("model"), c.optionalText("effort"), c.texts("rules")
	if c.body.Has("fallback_models") {
		d.Fallbacks = append([]string{}, c.body.Strings("fallback_models", workspace.MaxFallbacks)...)
	}
	if labels := c.texts("tools"); labels != nil {
		d.Tools = make(map[string]permission.Label, len(labels))
		for tool, label := range labels {
			d.Tools[tool] = permission.Label(label)
		}
	}
	if len(d.Rules) == 0 {
		d.Rules = nil
	}
	if c.body.Has("limits") {
		request.ParseObject(c.Checks, c.body.Pointer("limits"), c.body.Raw("limits"), &d.Limits, limitFields)
	}
	return d
}

const anyInt = 1 << 30 // the store checks the bounds

var limitFields = []request.Field[agent.Limits]{
	{Name: "max_response_seconds", Parse: func(c *request.Checks, at string, raw json.RawMessage, l *agent.Limits) {
		l.MaxResponseSeconds = c.Integer(at, raw, 0, anyInt)
	}},
	{Name: "max_turns", Parse: func(c *request.Checks, at string, raw json.RawMessage, l *agent.Limits) {
		l.MaxTurns = c.Integer(at, raw, 0, anyInt)
	}},
	{Name: "history_tokens", Parse: func(c *request.Checks, at string, raw json.RawMessage, l *agent.Limits) {
		if l.HistoryTokens = nil; string(raw) != "null" {
			l.HistoryTokens = new(c.Integer(at, raw, 0, anyInt))
		}
	}},
	{Name: "max_cost_usd", Parse: func(c *request.Checks, at string, raw json.RawMessage, l *agent.Limits) {
		if json.Unmarshal(raw, &l.MaxCostUSD) != nil {
			c.Type(at, "number")
		}
	}},
}

// texts parses an object whose values are texts, nil if it is absent.
func (c *call) texts(name string) map[string]string {
	at, raw := c.body.Pointer(name), c.body.Raw(name)
	if raw == nil || !c.Object(at, raw) {
		return nil
	}
	texts := make(map[string]string)
	for _, m := range request.Members(raw) {
		texts[m.Name], _ = c.Text(at+request.Pointer(m.Name), m.Value)
	}
	return texts
}

// note parses the reason for a version, for its history.
func (c *call) note() string {
	if text := c.optionalText("note"); text != nil {
		return *text
	}
	return ""
}
