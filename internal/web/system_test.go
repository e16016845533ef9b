package web

import (
	"testing"

	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
)

// TestAgentsAreStopped stops and resumes the agents of the server and of a workspace. An owner of a
// workspace cannot open the page.
func TestAgentsAreStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.signIn(t, account.NewUser{Email: "anna@halden.example", Name: "Anna Berg", Admin: true}, "")
	p.Go(w.URL + "/admin/system")
	p.Press("td button.danger", "Stop")
	p.See("td", "Stopped")
	if ws, err := w.Workspaces.Find(t.Context(), "demo"); err != nil || ws.Paused.At == nil {
		t.Errorf("the workspace is not paused: %v", err)
	}
	p.Press("td button", "Resume")
	p.Press(".card-f button", "Stop all agents")
	p.See(".stat", "Stopped")
	if server, err := w.Workspaces.FindServerPause(t.Context()); err != nil || server.At == nil {
		t.Errorf("the server is not paused: %v", err)
	}
	p.Review("system")
	p.Press(".card-f button", "Resume all agents")
	p.See(".stat", "Running")
	if ws, err := w.Workspaces.Find(t.Context(), "demo"); err != nil || ws.Paused.At != nil {
		t.Errorf("the workspace is paused: %v", err)
	}

	owner := w.signIn(t, account.NewUser{Email: "olga@halden.example", Name: "Olga Holm"}, apikey.Owner)
	owner.Go(w.URL + "/admin/system")
	owner.See("h1", "Not allowed")
}
