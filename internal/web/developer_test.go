package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
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
