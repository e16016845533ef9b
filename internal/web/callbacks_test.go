package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/browser"
	waiting "github.com/parley-server/parley/internal/testing/wait"
)

// TestCallbacksAreShown sends a message with a callback whose receiver fails, reads the attempts and
// sends the report again. The signing secret is shown once.
func TestCallbacksAreShown(t *testing.T) {
	t.Parallel()
	var got atomic.Int32
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if got.Add(1) == 1 {
			w.WriteHeader(http.StatusGone)
		}
	}))
	defer receiver.Close()
	w := serveWorld(t, apitest.New(t, apitest.Options{Egress: egress.Config{Allow: []string{receiver.URL}}}))
	p := w.signIn(t, account.NewUser{Email: "olga@halden.example", Name: "Olga Berg"}, apikey.Owner)
	settings := w.URL + "/w/demo/settings/callbacks"
	p.Go(settings)
	p.See("h2", "No deliveries")
	p.Press("a.btn", "Create secret")
	p.Press("button.primary", "Create secret")
	secret := p.MustElement("#once").MustProperty("value").Str()
	p.Go(settings)
	if !strings.HasPrefix(secret, "whsec_") || strings.Contains(p.MustHTML(), secret) {
		t.Errorf("the secret %.6s… is shown again, or is none", secret)
	}
	p.Press("a.btn", "Roll")
	p.Review("callbacks-roll")
	p.Press("button.primary", "Roll secret")
	if next := p.MustElement("#once").MustProperty("value").Str(); next == secret {
		t.Error("the secret did not change")
	}
	w.say(t, "What can you do?", `"callback":{"url":"`+receiver.URL+`/%3Cimg%20src=x%20onerror=hacked=1%3E?token=hush"}`)
	waiting.For(t, "the first attempt", func() bool {
		list, err := w.Callbacks.List(t.Context(), w.Workspace.ID, "failed", "", 10)
		return err == nil && len(list.Data) == 1
	})
	p.Go(settings + "?status=failed")
	p.Review("callbacks")
	if strings.Contains(p.MustHTML(), "hush") {
		t.Error("the page shows the query of an address")
	}
	p.Press("a.t", receiver.URL)
	p.See("td", "HTTP 410")
	p.See("dd", "Disabled")
	p.Review("callback")
	p.Press("button", "Redeliver")
	p.See(".note", "sent again")
	waiting.For(t, "the second attempt", func() bool {
		list, err := w.Callbacks.List(t.Context(), w.Workspace.ID, "delivered", "", 10)
		return err == nil && len(list.Data) == 1
	})
	p.MustReload().MustWaitLoad()
	p.See("td", "Delivered")
	unhurt(t, p)
}

// TestWorkspaceIsChanged changes the title and the rules of a workspace, loses no change of another
// administrator, stops its agents, and deletes it after its name was typed.
func TestWorkspaceIsChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.URL + "/w/demo/settings/workspace"
	owner := w.signIn(t, account.NewUser{Email: "olga@halden.example", Name: "Olga Berg"}, apikey.Owner)
	owner.Go(at)
	if n := len(owner.MustElements("[value=delete]")); n != 0 {
		t.Error("an owner can delete the workspace")
	}
	res := w.post(t, owner, "/w/demo/settings/workspace", "do=delete&confirm=demo")
	if _, err := w.Workspaces.Find(t.Context(), "demo"); err != nil || res != http.StatusForbidden {
		t.Errorf("an owner deletes the workspace: %d, %v", res, err)
	}
	other := w.signIn(t, account.NewUser{Email: "anna@halden.example", Name: "Anna Holm", Admin: true}, "")
	other.Go(at)
	owner.Fill("#f-name", "Support <b>desk</b>")
	owner.See("label", "The sender may not allow").MustClick()
	owner.See("label", "Callers may send instructions").MustClick()
	owner.Choose("[name=search_language]", "german")
	owner.Press("button", "Save settings")
	owner.See(".note", "Saved")
	if ws, err := w.Workspaces.Find(t.Context(), "demo"); err != nil || ws.Name != "Support <b>desk</b>" || !ws.SeparateApprover ||
		ws.AdminPatterns ||
		ws.CallerInstructions || !ws.CallerParameters || ws.SearchLanguage != "german" {
		t.Errorf("stored %+v, %v", ws, err)
	}
	other.Press("button", "Save settings")
	other.See(".note.bad", "has changed since you read it")
	owner.Press("a.danger", "Stop agents")
	owner.Press("button.fill", "Stop agents")
	owner.See("b", "Agents are stopped")
	owner.Review("workspace")
	owner.Press("button", "Resume agents")
	owner.See("b", "Stop the agents")
	other.Go(at)
	other.Fill("#f-confirm", "Demo")
	other.Press("button.fill", "Delete workspace")
	other.See(".err", "Type demo")
	other.Review("workspace-delete")
	for _, p := range []*browser.Page{owner, other} {
		p.Allow("404 (Not Found)") // open pages of the workspace ask for its approvals
	}
	other.Fill("#f-confirm", "demo")
	other.Press("button.fill", "Delete workspace")
	other.See(".note", "Workspace demo deleted")
	if _, err := w.Workspaces.Find(t.Context(), "demo"); err == nil {
		t.Error("the workspace is there")
	}
}
