package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/workspace"
)

const versionsOnPage = 20

// agentView is an agent in the editor, or one of its earlier versions.
type agentView struct {
	Agent     agent.Agent
	All       []agent.Summary // agents of the workspace
	Published agent.Version
	Shown     agent.Version // the draft, the published version or the one of the address
	Old       bool          // Shown is neither the draft nor published
	Form      *form
	Efforts   []option
	Models    []string      // suggestions
	Delete    bool          // asks whether to delete the agent
	From      agent.Version // Diff begins with it
	Others    []int         // versions that From may be
	Diff      textDiff
	Versions  []agent.Version
	Older     string
}

var effortOptions = []option{{"", "The model's own"}, {"minimal", "minimal"}, {"low", "low"}, {"medium", "medium"}, {"high", "high"}}

func (a *App) agentPage(w http.ResponseWriter, p *page) error {
	return a.showAgent(w, p, http.StatusOK, nil)
}

// showAgent renders the page. f is a form that was not accepted, or nil.
func (a *App) showAgent(w http.ResponseWriter, p *page, status int, f *form) error {
	q, agents := p.URL.Query(), a.srv.Agents
	view := agentView{Form: f, Efforts: effortOptions, Models: a.Models}
	var err error
	if view.Agent, err = agents.Find(p.Context(), p.Workspace.ID, q.Get("agent")); err != nil {
		return err
	}
	if view.All, err = agents.List(p.Context(), p.Workspace.ID); err != nil {
		return err
	}
	if view.Published, err = agents.Version(p.Context(), view.Agent, agent.Published); err != nil {
		return err
	}
	if err := a.readShown(p, &view); err != nil {
		return err
	}
	view.Delete = q.Get("delete") == "1" && !view.Agent.Default && p.Can("config:write")
	before, _ := strconv.Atoi(q.Get("before"))
	if view.Versions, err = agents.Versions(p.Context(), view.Agent, min(max(before, 0), view.Agent.Newest+1), versionsOnPage); err != nil {
		return err
	}
	if n := len(view.Versions); n == versionsOnPage && view.Versions[n-1].Number > 1 {
		older := without(q, "before")
		older.Set("before", strconv.Itoa(view.Versions[n-1].Number))
		view.Older = "?" + older.Encode()
	}
	for _, v := range view.Versions {
		if v.Number != view.Shown.Number {
			view.Others = append(view.Others, v.Number)
		}
	}
	if view.Form == nil {
		view.Form = agentForm(view.Agent, view.Shown)
	}
	return a.renderStatus(w, p, status, "agent", view)
}

// readShown reads the version of the page and the one that it is compared with.
func (a *App) readShown(p *page, view *agentView) (err error) {
	q, shown := p.URL.Query(), view.Published
	which, ok := agent.ParseWhich(q.Get("version"))
	switch {
	case ok && which > 0 && int(which) != view.Published.Number:
		view.Old = true
		shown, err = a.srv.Agents.Version(p.Context(), view.Agent, which)
	case view.Agent.HasDraft && (!ok || which == agent.Draft):
		shown, err = a.srv.Agents.Version(p.Context(), view.Agent, agent.Draft)
	}
	if err != nil {
		return err
	}
	view.Shown, view.From = shown, view.Published
	if from, ok := agent.ParseWhich(q.Get("from")); ok && from > 0 {
		if view.From, err = a.srv.Agents.Version(p.Context(), view.Agent, from); err != nil {
			return err
		}
	}
	view.Diff = diffDefinitions(view.From.Definition, shown.Definition)
	return nil
}

// agentForm returns the form of a version.
func agentForm(ag agent.Agent, v agent.Version) *form {
	cost := ""
	if v.Limits.MaxCostUSD != nil {
		cost = strconv.FormatFloat(*v.Limits.MaxCostUSD, 'f', -1, 64)
	}
	history := ""
	if v.Limits.HistoryTokens != nil {
		history = strconv.Itoa(*v.Limits.HistoryTokens)
	}
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	return emptyForm("revision", strconv.FormatInt(ag.Revision, 10), "instructions", v.Instructions, "model", text(v.Model), "effort",
		text(v.Effort), "fallback_models", fallbackText(v.Fallbacks),
		"max_response_seconds", strconv.Itoa(v.Limits.MaxResponseSeconds), "max_turns", strconv.Itoa(v.Limits.MaxTurns),
		"history_tokens", history, "max_cost_usd", cost)
}

// IsDraft reports whether the page shows a draft.
func (v agentView) IsDraft() bool { return v.Shown.Number == 0 }

// Next is the number of the version that is published next.
func (v agentView) Next() int { return v.Agent.Newest + 1 }

// Size is the number of characters of the instructions.
func (v agentView) Size() int { return utf8.RuneCountInString(v.Form.Value("instructions")) }

// Link returns the address of a version of the agent, as a query.
func (v agentView) Link(version any) string {
	q := make(url.Values)
	if !v.Agent.Default {
		q.Set("agent", v.Agent.Name)
	}
	switch n := version.(type) {
	case int:
		q.Set("version", strconv.Itoa(n))
	case string:
		q.Set("version", n)
	}
	return "?" + q.Encode()
}

// Try returns the address of the page that compares the draft, or an older version, with the
// published one.
func (v agentView) Try(home string) string {
	address := home + "/agent/try" + v.Link(nil)
	if v.Old {
		address = home + "/agent/try" + v.Link(v.Shown.Number)
	}
	return strings.TrimSuffix(address, "?")
}

// changeAgent serves the forms of the agent page.
func (a *App) changeAgent(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	revision, err := strconv.ParseInt(f.Value("revision"), 10, 64)
	if err != nil || revision < 1 {
		return unknownForm()
	}
	e := agent.Edit{Workspace: p.Workspace.ID, Name: p.URL.Query().Get("agent"), Revision: revision}
	var done string
	switch f.Value("do") {
	case "save", "publish":
		if done, err = a.saveAgent(p, f, e); err != nil {
			err = f.take(err, "instructions", "model", "effort", "fallback_models", "note")
		}
		if err == nil && f.Failed() {
			return a.showAgent(w, p, http.StatusUnprocessableEntity, f)
		}
	case "discard":
		_, err = a.srv.Agents.DropDraft(p.Context(), e)
		done = "Draft discarded. The published version is unchanged."
	case "rollback":
		number, _ := strconv.Atoi(f.Value("version"))
		var ag agent.Agent
		ag, err = a.srv.Agents.Rollback(p.Context(), e, number, "Rolled back to v"+strconv.Itoa(number))
		done = fmt.Sprintf("Version %d published. It is the same as version %d.", ag.Newest, number)
	case "delete":
		err = a.srv.Agents.Delete(p.Context(), e)
		done, e.Name = "Agent "+e.Name+" deleted. Its turns keep their versions.", ""
	default:
		return unknownForm()
	}
	if err != nil {
		return err
	}
	p.flash(w, done)
	back := "/w/" + p.Workspace.Slug + "/agent"
	if e.Name != "" {
		back += "?agent=" + url.QueryEscape(e.Name)
	}
	return p.redirect(w, back)
}

// saveAgent stores the fields as the draft, and publishes it if the form asks for that.
func (a *App) saveAgent(p *page, f *form, e agent.Edit) (done string, err error) {
	f.Values.Set("instructions", strings.ReplaceAll(f.Value("instructions"), "\r\n", "\n"))
	change := workspace.Change{Model: textOrNil(f.Value("model"))}
	if fallbacks := parseFallbacks(f.Value("fallback_models")); fallbacks != nil {
		change.FallbackModels = &fallbacks
	}
	if err := a.CheckModel(p.Context(), p.Workspace.ID, change); err != nil {
		return "", err
	}
	saved, err := a.srv.Agents.SaveDraft(p.Context(), e, func(d agent.Definition) (agent.Definition, error) {
		return f.definition(d)
	})
	switch {
	case errors.Is(err, errFields):
		return "", nil
	case err != nil:
		return "", err
	case !saved.HasDraft:
		return "Nothing has changed. Version " + strconv.Itoa(saved.Newest) + " stays published.", nil
	case f.Value("do") == "save":
		return "Draft saved. It runs after you publish it.", nil
	}
	e.Revision = saved.Revision
	saved, err = a.srv.Agents.Publish(p.Context(), e, strings.TrimSpace(f.Value("note")))
	return fmt.Sprintf("Version %d published. It runs from the next message on.", saved.Newest), err
}

// noFallback stands in a form for a list of fallback models without a model; an empty field is the
// list of the workspace.
const noFallback = "none"

func fallbackText(names []string) string {
	if names != nil && len(names) == 0 {
		return noFallback
	}
	return strings.Join(names, " ")
}

func parseFallbacks(text string) []string {
	if strings.TrimSpace(text) == noFallback {
		return []string{}
	}
	if names := strings.Fields(text); len(names) > 0 {
		return names
	}
	return nil
}

// errFields stops a change: the form has the errors of its fields.
var errFields = errors.New("the form has errors")

// definition returns d with the fields of the form, or fails with errFields.
func (f *form) definition(d agent.Definition) (agent.Definition, error) {
	d.Instructions = f.Value("instructions")
	d.Model, d.Effort, d.Fallbacks = textOrNil(f.Value("model")), textOrNil(f.Value("effort")), parseFallbacks(f.Value("fallback_models"))
	for name, to := range map[string]*int{"max_response_seconds": &d.Limits.MaxResponseSeconds, "max_turns": &d.Limits.MaxTurns} {
		if n, err := strconv.ParseInt(f.Value(name), 10, 32); err == nil {
			*to = int(n)
		} else {
			f.fail(name, "This is not a number.")
		}
	}
	d.Limits.HistoryTokens = nil
	if history := f.Value("history_tokens"); history != "" {
		n, err := strconv.ParseInt(history, 10, 32)
		if err != nil {
			f.fail("history_tokens", "This is not a number.")
		}
		d.Limits.HistoryTokens = new(int(n))
	}
	d.Limits.MaxCostUSD = nil
	if cost := f.Value("max_cost_usd"); cost != "" {
		usd, err := strconv.ParseFloat(cost, 64)
		if err != nil {
			f.fail("max_cost_usd", "This is not an amount.")
		}
		d.Limits.MaxCostUSD = &usd
	}
	if f.Failed() {
		return d, errFields
	}
	return d, nil
}

func textOrNil(s string) *string {
	if s = strings.TrimSpace(s); s == "" {
		return nil
	}
	return &s
}
