package web

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/modelset"
	"github.com/parley-server/parley/internal/toolenv"
)

// TestReachOfTools changes credentials, patterns and hosts. No page shows the value of a credential,
// and a change of egress that another administrator has overtaken is rejected.
func TestReachOfTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.signIn(t, account.NewUser{Email: "olga@halden.example", Name: "Olga Berg"}, apikey.Owner)
	settings := w.URL + "/w/demo/settings/"
	const value = "sk-7f3kQ2xYb81LmN0pRs5t"

	p.Go(settings + "credentials")
	p.Fill("#f-name", "GITHUB_TOKEN")
	p.Fill("#f-value", value)
	p.Press("button.primary", "Save credential")
	p.See(".err", "host")
	p.Fill("#f-allowed_hosts", "api.github.com\n*.example.com")
	p.Fill("#f-value", value)
	p.Press("button.primary", "Save credential")
	p.See("td", "api.github.com")
	p.Press("a.btn", "Change")
	p.Fill("#f-allowed_hosts", "api.github.com")
	p.Press("button.primary", "Save credential")
	p.See(".note", "Credential GITHUB_TOKEN saved")
	opened, err := w.Vault.Open(t.Context(), w.Workspace.ID, []string{"GITHUB_TOKEN"})
	if err != nil || len(opened) != 1 || string(opened[0].Value.Reveal()) != value || len(opened[0].Hosts) != 1 {
		t.Errorf("stored %+v, %v", opened, err)
	}
	p.See("td", "Not recently")
	if _, err := w.app.Modelset.Set(t.Context(), w.Workspace.ID, modelset.Provider{Name: "hub", Kind: modelset.OpenAI,
		BaseURL: "https://api.github.com/v1", Credential: "GITHUB_TOKEN", Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	p.Go(settings + "credentials")
	p.See("td", "model provider hub")
	if html := p.MustHTML(); strings.Contains(html, value) || strings.Contains(html, "Not recently") {
		t.Error("the page shows the value, or that a provider does not use it")
	}
	p.Review("credentials")

	w.say(t, `@call bash {"command":"git status"} bash {"command":"git log"}`, "")
	p.Go(settings + "allowlist")
	p.Fill("#f-pattern", "bash(git status)")
	p.Press("button.btn", "Show what it covers")
	p.See("#covers", `It covers 1 of the 2 calls of bash in the last 30 days: bash {"command":"git status"}`)
	p.Fill("#f-pattern", "bash(")
	p.Press("button.primary", "Add pattern")
	p.See(".err", "in parentheses")
	p.Fill("#f-pattern", "bash(git status)")
	p.Press("button.primary", "Add pattern")
	p.See("td", "git status")
	p.See("td", "Olga Berg")
	p.Review("allowlist")
	p.Press("button.danger", "Revoke")
	p.See(".empty", "The rule of each tool decides")

	p.Go(settings + "egress")
	p.Fill("#f-hosts", "api.github.com\nnot a host!")
	p.Press("button.primary", "Save hosts")
	p.See(".err", "is not a host")
	p.Go(settings + "egress")
	p.Fill("#f-hosts", "api.github.com")
	p.Press("button.primary", "Save hosts")
	p.See(".note", "Saved")
	if _, err := w.Pool.Exec(t.Context(), `INSERT INTO egress_requests
		(workspace_id, session_id, turn_id, call_id, method, scheme, host, path, credentials, refused, decision)
		SELECT $1, id, id, '', 'POST', 'https', 'tools.example', '/mcp', '{}', '{}', 'sent'
		FROM unnest(ARRAY['00000000-0000-0000-0000-000000000000', '0192a3b4-5c6d-7e8f-9a0b-1c2d3e4f5a6b']::uuid[]) AS id`,
		w.Workspace.ID); err != nil {
		t.Fatal(err)
	}
	p.Go(settings + "egress")
	p.See("td a", "0192a3b4-5c6d-7e8f-9a0b-1c2d3e4f5a6b")
	if links := p.MustElements("td a"); len(links) != 1 {
		t.Errorf("%d requests name a session", len(links))
	}
	p.Review("egress")
	if _, err := w.app.Runner.SetPolicy(t.Context(), w.Workspace.ID, toolenv.Policy{Public: true}, nil); err != nil {
		t.Fatal(err)
	}
	p.Fill("#f-hosts", "")
	p.Press("button.primary", "Save hosts")
	p.See(".note.bad", "has changed since you read it")
	p.Go(settings + "credentials?delete=GITHUB_TOKEN")
	p.Press("button.fill", "Delete credential")
	p.See("h2", "No credentials yet")
}
