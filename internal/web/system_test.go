package web

import (
	"context"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/server/admin"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
)

// busySystem is a server with work and with failures.
var busySystem = admin.System{
	Version: "v0.1.0", Commit: "81af1e8", Platform: "linux/amd64", PostgreSQL: "15.18", Replicas: 2, Listeners: 2, Listening: true,
	Working: true, LogLevel: "INFO",
	Migrations: admin.Migrations{Version: 36, Applied: 42, Pending: []string{"parley 37 00037_view.sql"}},
	Database:   admin.Database{Size: 48_234_496, Connections: 14, MaxConnections: 100, LongestTransaction: 0.25},
	Pool:       admin.Pool{Max: 24, Open: 9, InUse: 3},
	Queues: []admin.Queue{{Name: "callbacks", State: "retryable", Jobs: 2}, {Name: "callbacks", State: "available", Jobs: 1, Oldest: 4.2},
		{Name: "callbacks", State: "scheduled", Jobs: 3},
		{Name: "turns", State: "running", Jobs: 12}, {Name: "turns", State: "available", Jobs: 1204, Oldest: 71}},
	FailedJobs: []admin.Job{{ID: 4711, Kind: "callback_delivery", Queue: "callbacks", State: "retryable", Attempt: 3, MaxAttempts: 25,
		At:    time.Now(),
		Error: "dial tcp 192.0.2.7:443: connection refused <img src=x onerror=hacked=1>"}},
	Sandbox: admin.Sandbox{Available: true},
	Settings: []admin.Setting{{Name: "PARLEY_LISTEN", Value: ":8080", Source: "default"}, {Name: "PARLEY_VAULT_KEY", Value: "[set]",
		Source: "environment"}},
}

// TestAgentsAreStopped stops and resumes the agents of the server and of a workspace. An owner of a
// workspace cannot open the page.
func TestAgentsAreStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.signIn(t, account.NewUser{Email: "anna@halden.example", Name: "Anna Berg", Admin: true}, "")
	w.app.System = func(context.Context) (admin.System, error) { return busySystem, nil }
	p.Go(w.URL + "/admin/system")
	p.See("tr", "callbacks")
	if row := queueRows(busySystem.Queues)[0]; row.Waiting != 1 || row.Later != 5 {
		t.Errorf("the row of the queue callbacks is %+v", row)
	}
	p.See("li", "connection refused")
	p.See(".note.bad", "parley 37")
	unhurt(t, p)
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
	for path, want := range map[string]string{"/admin/log": "demo", "/w/demo/settings/log": "paused_at"} {
		p.Go(w.URL + path)
		p.See("li", "Anna Berg")
		p.See("li", want)
		p.See("li", "from 127.0.0.1")
	}
	p.Review("log")
	p.Press("li a", "Anna Berg")
	p.MustElement("[name=object]").MustSelect("workspace")
	p.Press(".filters button", "Filter")
	p.See(".changes dd", "mbr_")
	p.Go(w.URL + "/admin/log?actor=nobody")
	p.See("h2", "No change matches")
	p.Go(w.URL + "/admin/system")
	p.Press(".card-f button", "Resume all agents")
	p.See(".stat", "Running")
	if ws, err := w.Workspaces.Find(t.Context(), "demo"); err != nil || ws.Paused.At != nil {
		t.Errorf("the workspace is paused: %v", err)
	}

	owner := w.signIn(t, account.NewUser{Email: "olga@halden.example", Name: "Olga Holm"}, apikey.Owner)
	owner.Go(w.URL + "/admin/system")
	owner.See("h1", "Not allowed")
	owner.Go(w.URL + "/admin/log")
	owner.See("h1", "Not allowed")
	owner.Go(w.URL + "/w/demo/settings/log")
	owner.See("h1", "Changes")
}
