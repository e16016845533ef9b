package manifest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/parley-server/parley/client"
)

// note is the reason of the versions that Apply publishes.
const note = "parley apply"

// Stopped means that Apply made only the first changes of its plan. None of the others was made.
type Stopped struct {
	Made []Change
	Of   int    // number of changes of the plan
	At   Change // the one that failed
	Err  error
}

// Error implements error.
func (s *Stopped) Error() string {
	return fmt.Sprintf("%s: %v (%d of %d changes were made)", s.At.Title(), s.Err, len(s.Made), s.Of)
}

// Unwrap returns the reason.
func (s *Stopped) Unwrap() error { return s.Err }

// ErrChanged means that the workspace is not what the plan was made from. Nothing was changed.
var ErrChanged = errors.New("the configuration has changed since the plan")

// Title names the object of a change.
func (c Change) Title() string { return strings.TrimSpace(c.Kind + " " + c.Name) }

// Apply makes the changes of a plan, and calls done after each one. If the configuration has changed
// since the plan, it fails with ErrChanged before the first; an object that another administrator
// changes from then on is not overwritten, and ends it with a *Stopped.
func (p *Plan) Apply(ctx context.Context, a client.Admin, done func(Change)) error {
	present, _, err := Read(ctx, a, p.present.Documents != nil)
	if err != nil {
		return err
	}
	before, err := p.present.objects()
	if err != nil {
		return err
	}
	now, err := present.managedBy(p.present).objects()
	if err != nil {
		return err
	}
	if !equalObjects(before, now) {
		return ErrChanged
	}
	guarded := a.Since(p.position)
	for i, c := range p.Changes {
		if err := p.change(ctx, guarded, c); err != nil {
			return &Stopped{p.Changes[:i], len(p.Changes), c, err}
		}
		done(c)
	}
	return nil
}

func equalObjects(a, b map[objectKey]string) bool {
	for key, text := range a {
		if other, ok := b[key]; !ok || other != text {
			return false
		}
	}
	return len(a) == len(b)
}

// change makes one change.
func (p *Plan) change(ctx context.Context, a client.Admin, c Change) error {
	if c.Action == Delete {
		return p.remove(ctx, a, c)
	}
	return p.write(ctx, a, c)
}

func (p *Plan) write(ctx context.Context, a client.Admin, c Change) (err error) {
	switch slices.Index(kindNames, c.Kind) {
	case kindWorkspace:
		_, err = a.UpdateWorkspace(ctx, p.wanted.Workspace.change(), "")
	case kindSecret:
		s := p.wanted.Secrets[c.Name]
		_, err = a.PutCredential(ctx, client.CredentialChange{Name: c.Name, Hosts: s.Hosts, InQuery: s.InQuery, InBody: s.InBody,
			AllowHTTP: s.AllowHTTP})
	case kindToolServer:
		err = p.writeToolServer(ctx, a, c)
	case kindProvider:
		_, err = a.PutModelProvider(ctx, c.Name, p.wanted.Providers[c.Name].change())
	case kindEgress:
		_, err = a.PutEgress(ctx, client.Egress{Public: p.wanted.Egress.Public, Hosts: p.wanted.Egress.Hosts}, "")
	case kindRule:
		_, err = a.PutToolRule(ctx, c.Name, p.wanted.ToolRules[c.Name])
	case kindPattern:
		_, err = a.AddPattern(ctx, c.Name)
	case kindBudget:
		i := slices.IndexFunc(p.wanted.Budgets, func(b Budget) bool { return b.name() == c.Name })
		_, err = a.PutBudget(ctx, p.wanted.Budgets[i].budget())
	case kindDocument:
		_, err = a.PutDocument(ctx, c.Name, c.After, "")
	case kindSkill:
		_, err = a.PutSkill(ctx, c.Name, c.After, false, "")
	case kindAgent:
		if d := p.wanted.Agents[c.Name].definition(); c.Action == Create {
			_, err = a.CreateAgent(ctx, c.Name, d, note)
		} else {
			_, err = a.PutAgent(ctx, c.Name, d, note, "")
		}
	}
	return err
}

func (p *Plan) remove(ctx context.Context, a client.Admin, c Change) (err error) {
	switch slices.Index(kindNames, c.Kind) {
	case kindSecret:
		err = a.DeleteCredential(ctx, c.Name)
	case kindToolServer:
		err = a.DeleteToolServer(ctx, c.Name)
	case kindProvider:
		err = a.DeleteModelProvider(ctx, c.Name)
	case kindRule:
		_, err = a.DeleteToolRule(ctx, c.Name)
	case kindPattern:
		err = a.RevokePattern(ctx, p.present.patterns[c.Name])
	case kindBudget:
		kind, subject, _ := strings.Cut(c.Name, "/")
		err = a.DeleteBudget(ctx, kind, subject)
	case kindDocument:
		err = a.DeleteDocument(ctx, c.Name)
	case kindSkill:
		err = a.ArchiveSkill(ctx, c.Name)
	case kindAgent:
		err = a.DeleteAgent(ctx, c.Name, "")
	}
	return err
}

// IsConflict reports whether an error is about an object that another administrator changed.
func IsConflict(err error) bool {
	if errors.Is(err, ErrChanged) {
		return true
	}
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Status == http.StatusPreconditionFailed
}

func (w *Workspace) change() client.WorkspaceChange {
	return client.WorkspaceChange{
		Name: w.Name, MaxRunning: w.MaxRunning, StorageQuota: w.StorageQuota, MessagesPerMinute: (*int)(w.MessagesPerMinute),
		CallsPerMinute: (*int)(w.CallsPerMinute), OpenStreams: (*int)(w.OpenStreams), SeparateApprover: w.SeparateApprover,
		AdminPatterns:      w.AdminPatterns,
		CallerInstructions: w.CallerInstructions, CallerParameters: w.CallerParameters, FallbackModels: w.FallbackModels,
		ReasoningSummaries: w.ReasoningSummaries, SearchLanguage: w.SearchLanguage,
	}
}

func (b Budget) budget() client.Budget {
	out := client.Budget{Kind: b.Kind, MaxCostUSD: b.MaxCostUSD, MaxTokens: b.MaxTokens}
	if b.Subject != "" {
		out.Subject = &b.Subject
	}
	return out
}

// definition converts a complete agent.
func (a Agent) definition() client.AgentDefinition {
	d := client.AgentDefinition{Instructions: a.Instructions.Value, Model: a.Model, Effort: a.Effort, Rules: a.Rules}
	if a.Tools != nil {
		d.Tools = *a.Tools
	}
	if a.Fallbacks != nil {
		d.Fallbacks = append([]string{}, *a.Fallbacks...)
	}
	d.Limits = &client.AgentLimits{
		MaxResponseSeconds: *a.Limits.MaxResponseSeconds, MaxTurns: *a.Limits.MaxTurns, HistoryTokens: a.Limits.HistoryTokens,
		MaxCostUSD: a.Limits.MaxCostUSD,
	}
	return d
}
