package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/permission"
)

const (
	toolDays      = 30
	agentsOnTools = 20 // whose own rules the page shows
)

// toolRow is a built-in tool with its rule and its use.
type toolRow struct {
	permission.Setting
	Label       permission.Label
	Description string
	Unavailable string // the reason
	Fixed       bool   // no rule can be set
	Patterns    int    // of the allow-list, in force
	Use         session.ToolUse
	Agents      []agentRule
}

// agentRule is the rule of an agent's published version for a tool.
type agentRule struct{ Agent, Word, Tone string }

// toolsView is the page of the tools.
type toolsView struct {
	Servers  []toolServerRow
	List     []toolRow // the built-in ones
	Verdicts []option
}

var (
	verdictOptions = []option{{"", "Built-in rule"}, {"allow", "Allow"}, {"ask", "Ask"}, {"deny", "Deny"}}
	verdictTones   = map[permission.Verdict]string{permission.Allow: "ok", permission.Ask: "warn", permission.Deny: "bad"}
)

// Word is the verdict of the rule in force; the built-in rule may be more than a verdict.
func (t toolRow) Word() string {
	if t.Rule == nil {
		return t.Default
	}
	return t.Rule.String()
}

// Tone is the class of the rule's badge, "" for a rule that is more than a verdict.
func (t toolRow) Tone() string {
	v, ok := permission.ParseVerdict(t.Word())
	if !ok {
		return ""
	}
	return verdictTones[v]
}

// Chosen is the value of the rule in the form.
func (t toolRow) Chosen() string {
	if t.Rule == nil {
		return ""
	}
	return t.Rule.String()
}

// Median is how long half of the calls took at most.
func (t toolRow) Median() string {
	if t.Use.Median == nil {
		return "–"
	}
	return duration(time.Duration(*t.Use.Median * float64(time.Second)))
}

func (a *App) toolsPage(w http.ResponseWriter, p *page) error {
	patterns, err := a.Permissions.List(p.Context(), p.Workspace.ID)
	if err != nil {
		return err
	}
	facts, err := a.readToolFacts(p)
	if err != nil {
		return err
	}
	servers, err := a.Toolset.List(p.Context(), p.Workspace.ID)
	if err != nil {
		return err
	}
	view := toolsView{Verdicts: verdictOptions}
	for _, server := range servers {
		row, err := a.serverRow(p, server)
		if err != nil {
			return err
		}
		view.Servers = append(view.Servers, row)
	}
	for _, set := range facts.settings {
		if set.Label != "" { // its server shows it
			continue
		}
		label, _ := permission.LabelOf(set.Tool)
		row := toolRow{Setting: set, Label: label, Fixed: permission.IsFixed(set.Tool), Use: facts.uses[set.Tool]}
		for _, spec := range a.Tools() {
			if spec.Name == set.Tool {
				row.Description, _, _ = strings.Cut(spec.Description, ". ")
				row.Description, row.Unavailable = strings.TrimSuffix(row.Description, "."), spec.Unavailable
			}
		}
		for _, e := range patterns {
			if e.Tool == set.Tool && e.RevokedAt == nil {
				row.Patterns++
			}
		}
		view.List = append(view.List, row)
	}
	if err := a.readAgentRules(p, view.List); err != nil {
		return err
	}
	return a.render(w, p, "tools", view)
}

// readAgentRules adds the rules of the published versions of agents, which apply besides those of
// the workspace.
func (a *App) readAgentRules(p *page, tools []toolRow) error {
	agents, err := a.srv.Agents.List(p.Context(), p.Workspace.ID)
	if err != nil {
		return err
	}
	for _, e := range agents[:min(len(agents), agentsOnTools)] {
		v, err := a.srv.Agents.Version(p.Context(), e.Agent, agent.Published)
		if err != nil {
			return err
		}
		for i := range tools {
			if rule, ok := ruleOf(v.Definition, tools[i].Tool); ok {
				rule.Agent = e.Name
				tools[i].Agents = append(tools[i].Agents, rule)
			}
		}
	}
	return nil
}

// ruleOf returns the rule of a version for a tool; ok is false if it does not have one.
func ruleOf(d agent.Definition, tool string) (rule agentRule, ok bool) {
	if _, offered := d.Tools[tool]; d.Tools != nil && !offered {
		return agentRule{Word: "not offered"}, true
	}
	if verdict, ok := permission.ParseVerdict(d.Rules[tool]); ok {
		return agentRule{Word: verdict.String(), Tone: verdictTones[verdict]}, true
	}
	if label, _ := permission.LabelOf(tool); label == permission.ReadOnly && d.Tools[tool] == permission.Changes {
		return agentRule{Word: "ask", Tone: verdictTones[permission.Ask]}, true
	}
	return agentRule{}, false
}

// changeTool sets the rule of a tool, or restores the built-in one.
func (a *App) changeTool(w http.ResponseWriter, p *page) error {
	tool, rule := p.PostForm.Get("tool"), p.PostForm.Get("rule")
	verdict, ok := permission.ParseVerdict(rule)
	var err error
	switch {
	case ok:
		err = a.Permissions.Set(p.Context(), p.Workspace.ID, tool, verdict)
	case rule == "":
		err = a.Permissions.Reset(p.Context(), p.Workspace.ID, tool)
	default:
		return unknownForm()
	}
	if err != nil {
		return err
	}
	switch {
	case !ok:
		p.flash(w, "The built-in rule of "+tool+" is in force again.")
	case verdict == permission.Allow:
		p.flash(w, "Calls of "+tool+" run without an approval from now on.")
	case verdict == permission.Deny:
		p.flash(w, "Calls of "+tool+" are denied from now on.")
	default:
		p.flash(w, "Calls of "+tool+" need an approval from now on, unless a pattern of the allow-list matches.")
	}
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/tools")
}
