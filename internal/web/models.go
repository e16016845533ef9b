package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/store/modelset"
	"github.com/parley-server/parley/internal/store/workspace"
)

// modelRow is a model with its price. A price that is not known is nil.
type modelRow struct {
	Name string
	model.Entry
	InUse bool // an agent names it, or it is a fallback model
}

// modelsView is the page of models: providers of the workspace, fallback models and prices.
type modelsView struct {
	Providers []modelset.Provider
	Form      *form // of a provider
	Kinds     []option
	Edit      *modelset.Provider // its form replaces the one of a new provider
	Delete    *modelset.Provider // asks before this one is removed
	Fallback  *form
	Models    []modelRow
}

func (a *App) modelsPage(w http.ResponseWriter, p *page) error {
	return a.showModels(w, p, http.StatusOK, modelsView{})
}

// showModels renders the page. view has a form that was not accepted, if any.
func (a *App) showModels(w http.ResponseWriter, p *page, status int, view modelsView) error {
	var err error
	if view.Providers, err = a.Modelset.List(p.Context(), p.Workspace.ID); err != nil {
		return err
	}
	for i, provider := range view.Providers {
		if p.Can("admin") && p.URL.Query().Get("edit") == provider.Name {
			view.Edit = &view.Providers[i]
		}
		if p.Can("admin") && p.URL.Query().Get("delete") == provider.Name {
			view.Delete = &view.Providers[i]
		}
	}
	if view.Form == nil {
		view.Form = providerForm(view.Edit)
	}
	if view.Fallback == nil {
		view.Fallback = emptyForm("fallback_models", strings.Join(p.Workspace.FallbackModels, "\n"), "seen",
			strconv.FormatInt(p.Workspace.UpdatedAt.UnixMicro(), 10))
	}
	view.Kinds = []option{{string(modelset.OpenAI), "OpenAI, or compatible"}, {string(modelset.Anthropic), "Anthropic, or compatible"}}
	if view.Models, err = a.modelRows(p); err != nil {
		return err
	}
	return a.renderStatus(w, p, status, "models", view)
}

// modelRows returns the models that the workspace uses, then those of the catalog.
func (a *App) modelRows(p *page) (rows []modelRow, err error) {
	agents, err := a.srv.Agents.List(p.Context(), p.Workspace.ID)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	add := func(name string, inUse bool) {
		if name != "" && !seen[name] {
			e, _ := a.Catalog.Find(name)
			rows, seen[name] = append(rows, modelRow{name, e, inUse}), true
		}
	}
	for _, ag := range agents {
		name := a.DefaultModel
		if ag.Model != nil {
			name = *ag.Model
		}
		add(name, true)
	}
	for _, name := range p.Workspace.FallbackModels {
		add(name, true)
	}
	for _, e := range a.Catalog.Entries() {
		add(e.Name, false)
	}
	return rows, nil
}

func providerForm(of *modelset.Provider) *form {
	if of == nil {
		return emptyForm("timeout_seconds", strconv.Itoa(int(modelset.DefaultTimeout/time.Second)))
	}
	return emptyForm("name", of.Name, "kind", string(of.Kind), "base_url", of.BaseURL, "credential", of.Credential, "timeout_seconds",
		strconv.Itoa(int(of.Timeout/time.Second)))
}

// changeModels serves the forms of the page.
func (a *App) changeModels(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	var view modelsView
	var done string
	var err error
	switch f.Value("do") {
	case "provider":
		view.Form, done = f, "Provider "+f.Value("name")+" saved."
		err = a.saveProvider(p, f)
	case "delete":
		if err := a.Modelset.Remove(p.Context(), p.Workspace.ID, f.Value("name")); err != nil {
			return err
		}
		done = "Provider " + f.Value("name") + " removed."
	case "fallback":
		view.Fallback, done = f, "Fallback models saved. They apply to turns that begin from now on."
		err = a.saveFallback(p, f)
	default:
		return unknownForm()
	}
	if err != nil {
		if err := f.take(err, "name", "kind", "base_url", "credential", "timeout_seconds", "fallback_models"); err != nil {
			return err
		}
	}
	if f.Failed() {
		return a.showModels(w, p, http.StatusUnprocessableEntity, view)
	}
	p.flash(w, done)
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/settings/models")
}

func (a *App) saveProvider(p *page, f *form) error {
	seconds, err := strconv.Atoi(f.Value("timeout_seconds"))
	if err != nil || seconds < 1 {
		f.fail("timeout_seconds", "This is not a number of seconds.")
		return nil
	}
	_, err = a.SetModelProvider(p.Context(), p.Workspace.ID, modelset.Provider{
		Name: strings.TrimSpace(f.Value("name")), Kind: modelset.Kind(f.Value("kind")), BaseURL: strings.TrimSpace(f.Value("base_url")),
		Credential: strings.TrimSpace(f.Value("credential")), Timeout: time.Duration(seconds) * time.Second,
	})
	return err
}

func (a *App) saveFallback(p *page, f *form) error {
	seen, err := strconv.ParseInt(f.Value("seen"), 10, 64)
	if err != nil {
		return unknownForm()
	}
	change := workspace.Change{FallbackModels: new(append([]string{}, strings.Fields(f.Value("fallback_models"))...)),
		Seen: new(time.UnixMicro(seen))}
	if err := a.CheckModel(p.Context(), p.Workspace.ID, change); err != nil {
		return err
	}
	_, err = a.srv.Workspaces.Update(p.Context(), p.Workspace.ID, change)
	return err
}
