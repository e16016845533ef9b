package app_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

// TestDevelopmentModeHasATicketSystem calls the demo's tools from a turn. Nothing but these tools
// reaches their server.
func TestDevelopmentModeHasATicketSystem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at, _, err := serve(t, app.Options{DevDir: dir}, "DATABASE_URL="+dbtest.DSN(t), "PARLEY_LISTEN=127.0.0.1:0", "PARLEY_SANDBOX=off")
	if err != nil {
		t.Fatal(err)
	}
	env, err := app.ReadDevEnv(dir)
	if err != nil {
		t.Fatal(err)
	}
	send := func(body string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/api/v1/workspaces/demo/messages", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+env.APIKey)
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := send(`{"command":"@call tickets__list {\"state\":\"open\"}"}`); !strings.Contains(got, `"ok":true`) ||
		!strings.Contains(got, "wobbles") || strings.Contains(got, "Coffee") {
		t.Errorf("list: %s", got)
	}
	if got := send(`{"command":"@call tickets__create {\"title\":\"New chairs\"}","stream":false}`); !strings.Contains(got,
		`"error":"input_required"`) || !strings.Contains(got, "tickets__create") {
		t.Errorf("create: %s", got)
	}
	if got := send(`{"command":"@call order_supplies {\"item\":\"chairs\"}","stream":false}`); !strings.Contains(got,
		`"error":"input_required"`) || !strings.Contains(got, "order_supplies") {
		t.Errorf("order_supplies: %s", got)
	}
	if got := send(`{"command":"@call http_request {\"url\":\"http://tickets.demo.internal/mcp\"}"}`); !strings.Contains(got,
		"is not on the list of hosts") {
		t.Errorf("http_request: %s", got)
	}
	http.DefaultClient.CloseIdleConnections()
}
