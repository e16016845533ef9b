package web

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/need"
)

// use reads the sessions of the workspace demo with a key.
func (w *world) use(t *testing.T, key string) int {
	t.Helper()
	return w.request(t, http.MethodGet, "/api/v1/workspaces/demo/sessions", nil, http.Header{"Authorization": {"Bearer " + key}}).StatusCode
}

// TestTokensOfDevelopers creates a personal token as a viewer, whose role it follows, and creates,
// rolls and revokes the webhook_token as an owner. An owner cannot get a token of another member.
func TestTokensOfDevelopers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := w.URL + "/w/demo/settings/developer"
	viewer := w.signIn(t, account.NewUser{Email: "vera@halden.example", Name: "Vera Holm"}, apikey.Viewer)
	viewer.Go(settings + "/tokens")
	viewer.Review("tokens-none")
	viewer.Fill("#f-name", "laptop <img src=x onerror=hacked=1>")
	viewer.MustElement("#f-access").MustSelect("Send messages and read sessions")
	viewer.Press("button.primary[type=submit]", "Create token")
	viewer.See(".note.bad", "lacks the scope chat")
	viewer.MustElement("#f-access").MustSelect("Everything that my role allows")
	viewer.Press("button.primary[type=submit]", "Create token")
	text := viewer.MustElement("#once").MustProperty("value").Str()
	viewer.Review("tokens-once")
	if status := w.use(t, text); status != http.StatusOK {
		t.Errorf("the new token: %d", status)
	}
	viewer.Go(settings + "/tokens")
	if strings.Contains(viewer.MustHTML(), text) {
		t.Error("the page shows the token again")
	}
	viewer.Review("tokens")
	unhurt(t, viewer)

	owner := w.signIn(t, account.NewUser{Email: "olga@halden.example", Name: "Olga Berg"}, apikey.Owner)
	owner.Go(settings)
	owner.See(".badge", "personal")
	if _, _, err := w.Keys.Rotate(t.Context(), w.Workspace.ID, text[4:12], 0); err == nil {
		t.Error("an administrator got a token of another member")
	}
	owner.Go(settings + "/tokens")
	owner.See("h2", "No personal tokens yet")
	owner.Go(settings + "/webhook")
	owner.Review("webhook-none")
	owner.Press("button", "Create webhook_token")
	first := owner.MustElement("#once").MustProperty("value").Str()
	owner.Go(settings + "/webhook")
	owner.Review("webhook")
	owner.Press("a.btn", "Roll")
	owner.Press("button.fill", "Roll token")
	second := owner.MustElement("#once").MustProperty("value").Str()
	if a, b := w.use(t, first), w.use(t, second); a != http.StatusUnauthorized || b != http.StatusOK {
		t.Errorf("after the roll the old token gets %d, the new one %d", a, b)
	}
	owner.Press("a.btn", "Revoke")
	owner.Press("button.fill", "Revoke token")
	owner.See("h2", "No webhook_token")
	owner.Go(settings + "/connect")
	owner.See("li", w.URL+"/openai/v1")
	owner.Review("connect")

	viewer.Press("a.danger", "Revoke")
	viewer.Press("button.fill", "Revoke token")
	viewer.See("h2", "No personal tokens yet")
	if status := w.use(t, text); status != http.StatusUnauthorized {
		t.Errorf("the revoked token: %d", status)
	}
}

// TestSnippetsRun creates a key, tests it with the button of its page, and runs the programs of the
// page: with the new key, and those of the page of clients with a key from the environment.
func TestSnippetsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.signIn(t, account.NewUser{Email: "olga@halden.example", Name: "Olga Berg"}, apikey.Owner)
	p.Go(w.URL + "/w/demo/settings/developer")
	p.Fill("#f-name", "web site")
	p.Press("button.primary[type=submit]", "Create key")
	key := p.MustElement("#once").MustProperty("value").Str()
	p.See("[data-try-key] button", "Test it now").MustClick()
	p.See("[data-try-key] [role=status]", "The key works")
	p.Review("key-once")
	fresh := p.MustEval(
		`() => Object.fromEntries([...document.querySelectorAll("pre[id^=once-]")].map((pre) => [pre.id.slice(5), pre.textContent]))`)
	if got := fresh.Get("env").Str(); got != "PARLEY_URL="+w.URL+"\nPARLEY_WORKSPACE=demo\nPARLEY_API_KEY="+key {
		t.Errorf(".env: %s", got)
	}
	p.Go(w.URL + "/w/demo/settings/developer/connect")
	usual := p.MustEval(
		`() => Object.fromEntries([...document.querySelectorAll("pre[id^=c-]")].map((pre) => [pre.id.slice(2), pre.textContent]))`)
	for id, program := range map[string][]string{
		"curl": {"sh", "-c"}, "js": {"node", "--input-type=module", "-e"},
		"python": {"python3", "-c", "import ast,sys; ast.parse(sys.argv[1]); print('parsed')"},
	} {
		for env, text := range map[string]string{"PARLEY_API_KEY=wrong": fresh.Get(id).Str(), "PARLEY_API_KEY=" + key: usual.Get(id).Str()} {
			out := run(t, env, append(program, text)...)
			if want := map[string]string{"curl": "event: done", "python": "parsed"}[id]; strings.TrimSpace(out) == "" ||
				!strings.Contains(out, want) {
				t.Errorf("%s with %s:\n%s\n%s", id, env, text, out)
			}
		}
	}
	for _, text := range []string{fresh.Get("mcp").Str(), usual.Get("mcp").Str()} {
		var config struct {
			Servers map[string]struct {
				URL     string            `json:"url"`
				Headers map[string]string `json:"headers"`
			} `json:"mcpServers"`
		}
		if err := json.Unmarshal([]byte(text), &config); err != nil || config.Servers["parley"].URL != w.URL+"/mcp" ||
			!strings.HasPrefix(config.Servers["parley"].Headers["Authorization"], "Bearer ") {
			t.Errorf("%s: %v", text, err)
		}
	}
	packages, _ := filepath.Abs("../../compat/clients")
	if _, err := os.Stat(filepath.Join(packages, "node_modules/ai")); err == nil {
		if out := run(t, "PARLEY_API_KEY="+key, "sh", "-c", "cd "+packages+" && node --input-type=module -e \"$0\"",
			usual.Get("ai").Str()); strings.TrimSpace(out) == "" {
			t.Errorf("ai: %s", out)
		}
	}
}

// run returns the output of a program that is installed, or skips the test.
func run(t *testing.T, env string, argv ...string) string {
	t.Helper()
	if _, err := exec.LookPath(argv[0]); err != nil {
		need.Missing(t, "no %s", argv[0])
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", argv[0], err, out)
	}
	return string(out)
}
