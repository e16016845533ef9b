package manifest

import (
	"context"

	"github.com/parley-server/parley/client"
)

// Read returns the configuration of a workspace, with its documents if they are wanted, and the
// position of the log of changes before it.
func Read(ctx context.Context, a client.Admin, documents bool) (f File, position string, err error) {
	w, err := a.Workspace(ctx)
	if err != nil {
		return f, "", err
	}
	f = File{Version: Version, Workspace: workspaceOf(w)}
	for _, section := range []func(context.Context, client.Admin) error{
		f.readAgents, f.readSkills, f.readRules, f.readEgress, f.readSecrets, f.readToolServers, f.readProviders, f.readBudgets,
	} {
		if err := section(ctx, a); err != nil {
			return f, "", err
		}
	}
	if documents {
		if err := f.readDocuments(ctx, a); err != nil {
			return f, "", err
		}
	}
	return f, w.LogPosition, f.normalize()
}

func workspaceOf(w client.Workspace) *Workspace {
	limit := func(n *int) *Limit {
		if n == nil {
			return new(Limit(-1))
		}
		return new(Limit(*n))
	}
	return &Workspace{
		Name: &w.Name, MaxRunning: &w.MaxRunning, StorageQuota: &w.StorageQuota, MessagesPerMinute: limit(w.MessagesPerMinute),
		CallsPerMinute: limit(w.CallsPerMinute), OpenStreams: limit(w.OpenStreams), SeparateApprover: &w.SeparateApprover,
		AdminPatterns:      &w.AdminPatterns,
		CallerInstructions: &w.CallerInstructions, CallerParameters: &w.CallerParameters,
		FallbackModels:     new(append([]string{}, w.FallbackModels...)),
		ReasoningSummaries: &w.ReasoningSummaries, SearchLanguage: &w.SearchLanguage,
	}
}

func (f *File) readAgents(ctx context.Context, a client.Admin) error {
	list, err := a.Agents(ctx)
	if err != nil {
		return err
	}
	f.Agents = make(map[string]Agent)
	for _, entry := range list {
		v, err := a.AgentVersion(ctx, entry.Name, "published")
		if err != nil {
			return err
		}
		f.Agents[entry.Name] = agentOf(v.AgentDefinition)
		if entry.Default {
			f.standard = entry.Name
		}
	}
	return nil
}

func agentOf(d client.AgentDefinition) Agent {
	a := Agent{Model: d.Model, Effort: d.Effort, Rules: d.Rules, Instructions: Text{Value: d.Instructions}}
	if d.Tools != nil {
		a.Tools = &d.Tools
	}
	if d.Fallbacks != nil {
		a.Fallbacks = &d.Fallbacks
	}
	if l := d.Limits; l != nil {
		a.Limits = &AgentLimits{&l.MaxResponseSeconds, &l.MaxTurns, l.HistoryTokens, l.MaxCostUSD}
	}
	return a
}

// readSkills reads the versions that run. A skill without one is not part of the configuration.
func (f *File) readSkills(ctx context.Context, a client.Admin) error {
	list, err := a.Skills(ctx)
	if err != nil {
		return err
	}
	f.Skills = make(map[string]Text)
	for _, entry := range list {
		if entry.Status != "active" {
			continue
		}
		v, err := a.Skill(ctx, entry.Name, entry.Version)
		if err != nil {
			return err
		}
		f.Skills[entry.Name] = Text{Value: v.Document}
	}
	return nil
}

func (f *File) readRules(ctx context.Context, a client.Admin) error {
	tools, err := a.Tools(ctx)
	if err != nil {
		return err
	}
	f.ToolRules = make(map[string]string)
	for _, t := range tools {
		if t.Rule != nil {
			f.ToolRules[t.Name] = *t.Rule
		}
	}
	patterns, err := a.Allowlist(ctx)
	f.Allowlist, f.patterns = []string{}, make(map[string]string)
	for _, p := range patterns {
		if p.RevokedAt == nil {
			f.Allowlist = append(f.Allowlist, p.Pattern)
			f.patterns[p.Pattern] = p.ID
		}
	}
	return err
}

func (f *File) readEgress(ctx context.Context, a client.Admin) error {
	p, err := a.Egress(ctx)
	f.Egress = &Egress{p.Public, p.Hosts}
	return err
}

func (f *File) readSecrets(ctx context.Context, a client.Admin) error {
	list, err := a.Credentials(ctx)
	f.Secrets = make(map[string]*Secret)
	for _, s := range list {
		f.Secrets[s.Name] = &Secret{s.Hosts, s.InQuery, s.InBody, s.AllowHTTP, s.HasValue}
	}
	return err
}

func (f *File) readBudgets(ctx context.Context, a client.Admin) error {
	list, err := a.Budgets(ctx)
	f.Budgets = []Budget{}
	for _, b := range list {
		budget := Budget{Kind: b.Kind, MaxCostUSD: b.MaxCostUSD, MaxTokens: b.MaxTokens}
		if b.Subject != nil {
			budget.Subject = *b.Subject
		}
		f.Budgets = append(f.Budgets, budget)
	}
	return err
}

func (f *File) readDocuments(ctx context.Context, a client.Admin) error {
	list, err := a.Documents(ctx, "")
	if err != nil {
		return err
	}
	f.Documents = make(map[string]Text)
	for _, entry := range list {
		d, err := a.Document(ctx, entry.Path)
		if err != nil {
			return err
		}
		f.Documents[d.Path] = Text{Value: d.Content}
	}
	return nil
}
