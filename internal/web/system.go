package web

import (
	"net/http"

	"github.com/parley-server/parley/internal/store/workspace"
)

// systemView is the page that stops agents, of the server or of one workspace.
type systemView struct {
	Server     workspace.Pause
	Workspaces []workspace.Workspace
}

func (a *App) systemPage(w http.ResponseWriter, p *page) error {
	var view systemView
	var err error
	if view.Server, err = a.srv.Workspaces.FindServerPause(p.Context()); err != nil {
		return err
	}
	if view.Workspaces, err = a.srv.Workspaces.List(p.Context()); err != nil {
		return err
	}
	return a.render(w, p, "system", view)
}

// changeSystem stops or resumes agents. Without a workspace the form is about the server.
func (a *App) changeSystem(w http.ResponseWriter, p *page) error {
	f, by := newForm(p), "key:"+p.Visitor.ID
	slug, all := f.Value("workspace"), a.srv.Workspaces
	var ws workspace.Workspace
	var err error
	if slug != "" {
		if ws, err = all.Find(p.Context(), slug); err != nil {
			return err
		}
	}
	switch do := f.Value("do"); {
	case do == "pause" && slug == "":
		_, err = all.PauseServer(p.Context(), by)
	case do == "resume" && slug == "":
		_, err = all.ResumeServer(p.Context())
	case do == "pause":
		_, err = all.Pause(p.Context(), ws.ID, by)
	case do == "resume":
		_, err = all.Resume(p.Context(), ws.ID)
	default:
		return unknownForm()
	}
	if err != nil {
		return err
	}
	p.flash(w, map[bool]string{true: "Agents stopped. No turn starts, and running turns end within a second.", false: "Agents resumed. Queued turns start again."}[f.Value("do") == "pause"])
	return p.redirect(w, "/admin/system")
}
