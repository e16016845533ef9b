package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/toolset"
)

// toolServerView is the page of a tool server.
type toolServerView struct {
	toolServerRow
	Rows        []ownToolRow
	Headers     []option // names and values, which name credentials
	Connections []connectionRow
	Remove      bool  // asks before the server is removed
	Form        *form // with the definitions of an HTTP API
}

// ownToolRow is a tool of a server in a list.
type ownToolRow struct {
	toolRow
	Own   toolset.Tool
	State ownState
}

// ownState is the state of a tool of the workspace's own.
type ownState struct{ Word, Tone string }

var ownStates = map[toolset.State]ownState{
	toolset.Usable: {"Ready", "ok"}, toolset.New: {"New", "warn"}, toolset.Changed: {"Changed", "warn"},
	toolset.Missing: {"Withdrawn", "off"}, toolset.Disabled: {"Disabled", "off"},
}

// Description is the first sentence of what a tool does.
func (t ownToolRow) Description() string {
	switch {
	case t.Own.Definition != nil:
		return t.Own.Definition.Description
	case t.Own.Offered != nil:
		return t.Own.Offered.Description
	}
	return ""
}

// Request is how a call becomes a request to an HTTP API; nil for other tools.
func (t ownToolRow) Request() *toolset.Request {
	if t.Own.Definition == nil {
		return nil
	}
	return t.Own.Definition.HTTP
}

// ownRow describes a tool with its rule and use.
func (facts toolFacts) ownRow(t toolset.Tool) ownToolRow {
	var set permission.Setting
	if i := slices.IndexFunc(facts.settings, func(s permission.Setting) bool { return s.Tool == t.Name }); i >= 0 {
		set = facts.settings[i]
	}
	return ownToolRow{toolRow{Setting: set, Label: set.Label, Use: facts.uses[t.Name]}, t, ownStates[t.State()]}
}

func (a *App) toolServerPage(w http.ResponseWriter, p *page) error {
	return a.showToolServer(w, p, http.StatusOK, nil)
}

// showToolServer shows the page of a server. f is the form with its definitions; nil: as they are.
func (a *App) showToolServer(w http.ResponseWriter, p *page, status int, f *form) error {
	server, err := a.Toolset.Find(p.Context(), p.Workspace.ID, p.PathValue("server"))
	if err != nil {
		return missingPage(err)
	}
	facts, err := a.readToolFacts(p)
	if err != nil {
		return err
	}
	row, err := a.serverRow(p, server)
	if err != nil {
		return err
	}
	view := toolServerView{toolServerRow: row, Remove: p.Can("config:write") && p.URL.Query().Has("remove"), Form: f}
	if server.Kind == toolset.HTTP && f == nil {
		view.Form = emptyForm("tools", definitionsText(server))
	}
	if view.Connections, err = a.readConnections(p, server); err != nil {
		return err
	}
	for _, t := range server.Tools {
		view.Rows = append(view.Rows, facts.ownRow(t))
	}
	for _, name := range slices.Sorted(maps.Keys(server.Headers)) {
		view.Headers = append(view.Headers, option{name, server.Headers[name]})
	}
	return a.renderStatus(w, p, status, "toolserver", view)
}

// definedTool is a tool of an HTTP API in the form that replaces it.
type definedTool struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description"`
	Schema      json.RawMessage  `json:"input_schema"`
	Idempotent  bool             `json:"idempotent,omitempty"`
	HTTP        *toolset.Request `json:"http"`
}

// definitionsText returns the tools of an HTTP API as JSON.
func definitionsText(s toolset.Server) string {
	list := []definedTool{}
	for _, t := range s.Tools {
		if d := t.Definition; d != nil {
			list = append(list, definedTool{t.OwnName, d.Title, d.Description, d.Schema, d.Annotations.Idempotent, d.HTTP})
		}
	}
	raw, err := json.MarshalIndent(list, "", "  ")
	if err != nil { // the schemas are from the database
		return ""
	}
	return string(raw)
}

// replaceHTTPTools replaces the tools of an HTTP API by those of the form.
func (a *App) replaceHTTPTools(w http.ResponseWriter, p *page, name string) error {
	f := newForm(p)
	d := parseTools(f)
	if !f.Failed() {
		server, err := a.ReplaceHTTPTools(p.Context(), p.Workspace.ID, name, d.Tools)
		if err == nil {
			p.flash(w, "The definitions of "+name+" were replaced. It has "+plural(len(server.Tools), "tool", "tools")+".")
			return p.redirect(w, "/w/"+p.Workspace.Slug+"/tools/servers/"+name)
		}
		if err := f.take(missingPage(err), "tools"); err != nil {
			return err
		}
	}
	return a.showToolServer(w, p, http.StatusUnprocessableEntity, f)
}

// missingPage turns an object that does not exist into a missing page.
func missingPage(err error) error {
	if f := fault.From(err); f != nil && f.Code == fault.ObjectNotFound {
		return fault.New(fault.RouteNotFound, "%s", f.Message)
	}
	return err
}

// changeToolServer serves the forms of a tool server.
func (a *App) changeToolServer(w http.ResponseWriter, p *page) error {
	ws, name := p.Workspace.ID, p.PathValue("server")
	at := "/w/" + p.Workspace.Slug + "/tools"
	switch do := p.PostForm.Get("do"); do {
	case "refresh":
		server, skipped, err := a.RefreshToolServer(p.Context(), ws, name)
		if f := fault.From(err); f != nil && f.Code == fault.ObjectConflict {
			p.flashBad(w, "The tools could not be read. "+f.Message)
			break
		}
		if err != nil {
			return missingPage(err)
		}
		p.flash(w, refreshedText(server)+skippedText(skipped))
	case "enable", "disable":
		if err := a.Toolset.Enable(p.Context(), ws, name, do == "enable"); err != nil {
			return missingPage(err)
		}
		p.flash(w, map[string]string{"enable": "Agents may use its tools again.", "disable": "Agents cannot use its tools from now on."}[do])
	case "connect":
		return a.connectToolServer(w, p, name)
	case "replace":
		return a.replaceHTTPTools(w, p, name)
	case "disconnect":
		if err := a.disconnectToolServer(w, p, name); err != nil {
			return err
		}
	case "remove":
		if err := a.Toolset.Remove(p.Context(), ws, name); err != nil {
			return missingPage(err)
		}
		p.flash(w, "Removed "+name+" with its tools and their rules.")
		return p.redirect(w, at)
	default:
		return unknownForm()
	}
	return p.redirect(w, at+"/servers/"+name)
}

func refreshedText(s toolset.Server) string {
	if n := len(toolServerRow{Server: s}.Waiting()); n > 0 {
		return fmt.Sprintf("The tools were read again. %s for your review.", plural(n, "definition waits", "definitions wait"))
	}
	return "The tools were read again. No definition has changed."
}
