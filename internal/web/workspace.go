package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/workspace"
)

// workspaceView is the page of the settings of a workspace.
type workspaceView struct {
	Form      *form
	Languages []option
	Ask       string // asks before the agents are stopped or the workspace is deleted
	Delete    *form
	Replay    time.Duration // retention, which the server sets
	Audit     time.Duration
}

var searchLanguages = languageOptions()

// languageOptions labels the languages of the search by their English names.
func languageOptions() (list []option) {
	for _, l := range workspace.SearchLanguages {
		list = append(list, option{l, strings.ToUpper(l[:1]) + l[1:]})
	}
	list[slices.Index(workspace.SearchLanguages, "simple")].Label = "No language"
	return list
}

func (a *App) workspacePage(w http.ResponseWriter, p *page) error {
	return a.showWorkspace(w, p, http.StatusOK, workspaceView{})
}

func (a *App) showWorkspace(w http.ResponseWriter, p *page, status int, view workspaceView) error {
	if view.Form == nil {
		ws := p.Workspace
		view.Form = emptyForm("name", ws.Name, "search_language", ws.SearchLanguage, "seen", strconv.FormatInt(ws.UpdatedAt.UnixMicro(), 10))
		for rule, on := range map[string]bool{"separate_approver": ws.SeparateApprover, "admin_patterns": ws.AdminPatterns,
			"caller_instructions": ws.CallerInstructions, "caller_parameters": ws.CallerParameters, "reasoning_summaries": ws.ReasoningSummaries} {
			if on {
				view.Form.Values.Add("rule", rule)
			}
		}
	}
	if view.Delete == nil {
		view.Delete = emptyForm()
	}
	if ask := p.URL.Query().Get("ask"); ask == "pause" && p.Can("admin") && p.Workspace.Paused.At == nil {
		view.Ask = ask
	}
	view.Languages = searchLanguages
	view.Replay, view.Audit = a.srv.Sessions.ReplayWindow(), a.srv.Sessions.AuditRetention()
	return a.renderStatus(w, p, status, "workspace", view)
}

// changeWorkspace serves the forms of the page.
func (a *App) changeWorkspace(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	switch f.Value("do") {
	case "save":
		return a.saveWorkspace(w, p, f)
	case "pause":
		if _, err := a.srv.Workspaces.Pause(p.Context(), p.Workspace.ID, "key:"+p.Visitor.ID); err != nil {
			return err
		}
		p.flash(w, "Agents stopped. No turn starts, and running turns end within a second.")
	case "resume":
		if _, err := a.srv.Workspaces.Resume(p.Context(), p.Workspace.ID); err != nil {
			return err
		}
		p.flash(w, "Agents resumed. Queued turns start again.")
	case "delete":
		return a.deleteWorkspace(w, p, f)
	default:
		return unknownForm()
	}
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/settings/workspace")
}

func (a *App) saveWorkspace(w http.ResponseWriter, p *page, f *form) error {
	seen, err := strconv.ParseInt(f.Value("seen"), 10, 64)
	if err != nil {
		return unknownForm()
	}
	_, err = a.srv.Workspaces.Update(p.Context(), p.Workspace.ID, workspace.Change{
		Seen: new(time.UnixMicro(seen)), Name: new(strings.TrimSpace(f.Value("name"))),
		SeparateApprover: new(f.Has("rule", "separate_approver")), AdminPatterns: new(f.Has("rule", "admin_patterns")),
		CallerInstructions: new(f.Has("rule", "caller_instructions")), CallerParameters: new(f.Has("rule", "caller_parameters")),
		ReasoningSummaries: new(f.Has("rule", "reasoning_summaries")), SearchLanguage: new(f.Value("search_language"))})
	if err != nil {
		if err := f.take(err, "name", "search_language"); err != nil {
			return err
		}
		return a.showWorkspace(w, p, http.StatusUnprocessableEntity, workspaceView{Form: f})
	}
	p.flash(w, "Saved.")
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/settings/workspace")
}

// deleteTime limits the deletion of a workspace, which can have many sessions. It can be repeated.
const deleteTime = 10 * time.Minute

// deleteWorkspace removes the workspace with everything in it. As in the API, only administrators of
// the server may.
func (a *App) deleteWorkspace(w http.ResponseWriter, p *page, f *form) error {
	if !p.Visitor.Admin {
		return fault.New(fault.InsufficientScope, "Only administrators of the server can delete a workspace.")
	}
	if f.Value("confirm") != p.Workspace.Slug {
		f.fail("confirm", "Type "+p.Workspace.Slug+" to delete it.")
		return a.showWorkspace(w, p, http.StatusUnprocessableEntity, workspaceView{Delete: f})
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.Context()), deleteTime)
	defer cancel()
	sessions, _, err := a.DeleteWorkspace(ctx, p.Workspace.ID, "key:"+p.Visitor.ID)
	if err != nil {
		return err
	}
	p.flash(w, "Workspace "+p.Workspace.Slug+" deleted, with "+plural(sessions, "session", "sessions")+".")
	return p.redirect(w, "/workspaces")
}
