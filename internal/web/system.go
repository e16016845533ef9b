package web

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/parley-server/parley/internal/server/admin"
	"github.com/parley-server/parley/internal/store/workspace"
)

// systemView is the page of the server: its state, and the switches that stop agents.
type systemView struct {
	admin.System
	Server     workspace.Pause
	Workspaces []workspace.Workspace
	Lines      []queueRow
}

// queueRow are the jobs of a queue.
type queueRow struct {
	Name                               string
	Waiting, Running, Later, Discarded int64
	Oldest                             time.Duration // since the oldest waiting job was to run; 0: none waits
}

func (a *App) systemPage(w http.ResponseWriter, p *page) error {
	var view systemView
	var err error
	if view.System, err = a.System(p.Context()); err != nil {
		return fmt.Errorf("describe the server: %w", err)
	}
	view.Lines = queueRows(view.Queues)
	if view.Server, err = a.srv.Workspaces.FindServerPause(p.Context()); err != nil {
		return err
	}
	if view.Workspaces, err = a.srv.Workspaces.List(p.Context()); err != nil {
		return err
	}
	return a.render(w, p, "system", view)
}

// queueRows returns a row for each queue, by name.
func queueRows(states []admin.Queue) []queueRow {
	var rows []queueRow
	for _, s := range states {
		i := slices.IndexFunc(rows, func(r queueRow) bool { return r.Name == s.Name })
		if i < 0 {
			i, rows = len(rows), append(rows, queueRow{Name: s.Name})
		}
		switch r := &rows[i]; s.State {
		case "available":
			r.Waiting += s.Jobs
			r.Oldest = time.Duration(s.Oldest * float64(time.Second))
		case "pending", "scheduled", "retryable": // a callback that is retried is scheduled
			r.Later += s.Jobs
		case "running":
			r.Running += s.Jobs
		case "discarded":
			r.Discarded += s.Jobs
		}
	}
	return rows
}

// Health returns the class and the word of the server's state.
func (v systemView) Health() [2]string {
	switch {
	case v.Server.At != nil:
		return [2]string{"bad", "Agents stopped"}
	case len(v.Migrations.Pending) > 0:
		return [2]string{"bad", "Migrations pending"}
	case !v.Listening:
		return [2]string{"warn", "Not listening"}
	}
	return [2]string{"ok", "Running"}
}

// Longest is the age of the oldest open transaction.
func (v systemView) Longest() time.Duration {
	return time.Duration(v.Database.LongestTransaction * float64(time.Second))
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
	p.flash(w, map[bool]string{true: "Agents stopped. No turn starts, and running turns end within a second.",
		false: "Agents resumed. Queued turns start again."}[f.Value("do") == "pause"])
	return p.redirect(w, "/admin/system")
}
