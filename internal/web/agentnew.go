package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/parley-server/parley/internal/store/agent"
)

// newAgentView is the form that creates an agent as a copy of another one.
type newAgentView struct {
	Form    *form
	Sources []option
}

func (a *App) newAgentPage(w http.ResponseWriter, p *page) error {
	return a.showNewAgent(w, p, http.StatusOK, emptyForm("from", p.URL.Query().Get("from")))
}

func (a *App) showNewAgent(w http.ResponseWriter, p *page, status int, f *form) error {
	list, err := a.srv.Agents.List(p.Context(), p.Workspace.ID)
	if err != nil {
		return err
	}
	view := newAgentView{Form: f}
	for _, e := range list {
		view.Sources = append(view.Sources, option{e.Name, e.Name})
	}
	view.Sources = append(view.Sources, option{"-", "Nothing: empty instructions"})
	return a.renderStatus(w, p, status, "agent-new", view)
}

// createAgent creates an agent whose first version is a copy of another agent's published one.
func (a *App) createAgent(w http.ResponseWriter, p *page) error {
	f, d := newForm(p), agent.Defaults()
	if from := f.Value("from"); from != "-" {
		source, err := a.srv.Agents.Find(p.Context(), p.Workspace.ID, from)
		if err != nil {
			return err
		}
		v, err := a.srv.Agents.Version(p.Context(), source, agent.Published)
		if err != nil {
			return err
		}
		d = v.Definition
	}
	e := agent.Edit{Workspace: p.Workspace.ID, Name: strings.TrimSpace(f.Value("name"))}
	created, err := a.srv.Agents.Create(p.Context(), e, d, strings.TrimSpace(f.Value("note")))
	if err != nil {
		if err := f.take(err, "name", "note"); err != nil {
			return err
		}
		return a.showNewAgent(w, p, http.StatusUnprocessableEntity, f)
	}
	p.flash(w, "Agent "+created.Name+" created. Messages reach it with \"agent\": \""+created.Name+"\".")
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/agent?agent="+url.QueryEscape(created.Name))
}
