package e2e_test

import (
	"strings"
	"testing"

	"github.com/go-rod/rod/lib/proto"
	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/slow"
)

// TestPlaygroundSurvivesItsServer kills the server in the middle of an answer and starts it again.
// The open page shows the whole answer, as the database has it.
func TestPlaygroundSurvivesItsServer(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs processes")
	browser := browse(t)
	w := newWorld(t)
	s := w.serve(t, nil)
	tab := browser.MustPage("")
	tab.MustSetCookies(&proto.NetworkCookieParam{Name: "parley_session", Value: w.signedIn(t), URL: s.url})
	tab.MustNavigate(s.url + "/w/w/chat").MustWaitLoad()
	tab.MustElement("#msg").MustEval(`function () { this.value = "@say # An answer\n@text 400 deltas of 12 bytes at 50/s"; }`)
	tab.MustElement("#send").MustClick()
	tab.MustWait(`() => (document.querySelector("article .prose:last-of-type")?.textContent.length ?? 0) > 300`)
	s.kill()
	tab.MustWait(`() => document.getElementById("state").dataset.state === "reconnecting"`)
	w.serveAt(t, strings.TrimPrefix(s.url, "http://"), nil)
	tab.MustWait(`() => document.getElementById("state").dataset.state === "done"`)

	session := tab.MustEval(`() => location.pathname.split("/").pop()`).Str()
	content, status := w.answer(t, session)
	shown := tab.MustElement("article").MustEval(`function () { return this.source; }`).Str()
	if status != "completed" || shown != content || !strings.Contains(content, "399..") {
		t.Errorf("the page has %d characters, the %s answer %d; they differ at byte %d", len(shown), status, len(content), differ(shown, content))
	}
}

// signedIn creates an owner of the workspace and returns the cookie of a browser.
func (w *world) signedIn(t *testing.T) string {
	t.Helper()
	accounts := account.New(w.pool, nil)
	u, err := accounts.Create(t.Context(), account.NewUser{Email: "anna@halden.example", Name: "Anna Lindqvist"})
	if err != nil {
		t.Fatal(err)
	}
	var id uuid.UUID
	if err := w.pool.QueryRow(t.Context(), `SELECT id FROM workspaces WHERE slug = 'w'`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	if err := accounts.SetRole(t.Context(), id, u.ID, apikey.Owner); err != nil {
		t.Fatal(err)
	}
	cookie, err := accounts.Begin(t.Context(), u.ID, "127.0.0.1", "Mozilla/5.0")
	if err != nil {
		t.Fatal(err)
	}
	return cookie
}
