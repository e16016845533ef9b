package app_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/server/admin"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestServerDescribesItself reads the state of two processes on one database. The settings are
// without secrets.
func TestServerDescribesItself(t *testing.T) {
	t.Parallel()
	dsn := dbtest.DSN(t)
	at, _, err := serve(t, app.Options{}, "DATABASE_URL="+dsn, "PARLEY_LISTEN=127.0.0.1:0", "PARLEY_SANDBOX=off")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := serve(t, app.Options{}, "DATABASE_URL="+dsn, "PARLEY_HTTP=false", "PARLEY_SANDBOX=off"); err != nil {
		t.Fatal(err)
	}
	cfg, err := app.Load(app.Sources{Environ: []string{"DATABASE_URL=" + dsn, "PARLEY_VAULT_KEY=" + vaultKey}})
	if err != nil {
		t.Fatal(err)
	}
	stores, err := app.OpenStores(t.Context(), cfg, t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer stores.Close()
	w, err := stores.Workspaces.Create(t.Context(), "demo", "", "")
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := stores.Keys.Create(t.Context(), apikey.Grant{Workspace: w.ID, Name: "admin", Scopes: apikey.Scopes{apikey.ServerAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	var v admin.System
	wait.For(t, "two processes that listen", func() bool {
		text, v = system(t, at, key)
		return v.Replicas == 2 && v.Listeners == 2 && v.Listening
	})
	if v.PostgreSQL == "" || v.Migrations.Applied == 0 || len(v.Migrations.Pending) != 0 || v.Migrations.Version == 0 || !v.Working ||
		v.Pool.Open == 0 || v.Queues == nil ||
		v.Database.Size == 0 || v.Database.Connections < 2 || v.Database.MaxConnections < v.Database.Connections || v.Listeners != 2 ||
		v.LogLevel == "" {
		t.Errorf("the state is %s", text)
	}
	if v.Sandbox.Available || v.Sandbox.Reason == nil {
		t.Errorf("the sandbox is %+v", v.Sandbox)
	}
	if !strings.Contains(string(text), `"PARLEY_LISTEN","value":"127.0.0.1:0"`) || strings.Contains(string(text), vaultKey) {
		t.Errorf("the settings are %+v", v.Settings)
	}
}

// system returns the state of a server, as text and parsed.
func system(t *testing.T, at, key string) (text []byte, v admin.System) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/api/v1/admin/system", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	defer http.DefaultClient.CloseIdleConnections()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	got := struct{ Data *admin.System }{&v}
	if err := json.Unmarshal(text, &got); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, text)
	}
	return text, v
}
