package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/browser"
)

const password = "river stone lantern 42"

// TestFirstRun opens the server for the first time: the setup page creates the administrator and a
// workspace, once. Then the password signs in, a wrong one does not, and the number of tries is
// limited.
func TestFirstRun(t *testing.T) {
	t.Parallel()
	w := serveConfigured(t, apitest.New(t, apitest.Options{}), func(c *server.Config) { c.Local = true }) // as make run serves it
	token, err := w.Accounts.NewSetupToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := browser.New(t)
	p.Go(w.URL + "/workspaces")
	p.See("h1", "Create the first administrator")
	p.Fill("#f-token", "wrong")
	p.Fill("#f-email", "anna@halden.example")
	p.Fill("#f-password", password)
	p.Fill("#f-workspace", "halden")
	p.Press("button.primary", "Create account")
	p.See(".err", "not valid any more")
	if _, err := w.Workspaces.Find(t.Context(), "halden"); err == nil {
		t.Error("a wrong token created a workspace")
	}

	p.Go(w.URL + "/setup?token=" + url.QueryEscape(token))
	p.Review("setup")
	p.Fill("#f-email", "anna@halden.example")
	p.Fill("#f-password", "password1234")
	p.Fill("#f-workspace", "halden")
	p.Press("button.primary", "Create account")
	p.See(".err", "easy to guess")
	p.Fill("#f-password", password)
	p.Press("button.primary", "Create account")
	if !strings.HasPrefix(p.Path(), "/w/halden/") {
		t.Fatalf("setup led to %s", p.Path())
	}
	p.Go(w.URL + "/setup?token=" + url.QueryEscape(token))
	if p.Path() == "/setup" {
		t.Error("the setup page works twice")
	}
	p.Go(w.URL + "/account")
	p.Review("account")
	before := p.MustCookies()
	p.Press("button", "Sign out")
	p.See("h1", "Sign in")
	p.Review("login")

	// The cookie of before is worth nothing, also at the next sign-in.
	if err := p.SetCookies(nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range before {
		p.MustSetCookies(cookieParam(c, w.URL))
	}
	p.Go(w.URL + "/account")
	p.See("h1", "Sign in")
	p.Fill("#f-email", "anna@halden.example")
	p.Fill("#f-password", "wrong wrong wrong")
	p.Press("button.primary", "Sign in")
	p.See(".err", "Email or password is wrong")
	p.Review("login-wrong")
	p.Fill("#f-password", password)
	p.Press("button.primary", "Sign in")
	if p.Path() != "/account" {
		t.Errorf("the sign-in led to %s", p.Path())
	}
	for _, c := range p.MustCookies() {
		for _, old := range before {
			if c.Name == "parley_session" && c.Value == old.Value {
				t.Error("the sign-in kept the cookie")
			}
		}
	}

	for range triesOfAccount {
		res, err := http.PostForm(w.URL+"/login", url.Values{"email": {"anna@halden.example"}, "password": {"nope nope nope"}})
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode == http.StatusTooManyRequests {
			return
		}
	}
	t.Errorf("%d wrong passwords in a minute were accepted", triesOfAccount)
}

// TestMembersAndUsers invites a member, who sets a password with the link, is an editor at once and
// loses the workspace when removed.
func TestMembersAndUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.signIn(t, account.NewUser{Email: "olga@halden.example", Name: "Olga Berg", Password: password, Admin: true}, "")
	owner.Go(w.URL + "/w/demo/settings/members")
	owner.See("h2", "No members yet")
	owner.Fill("#f-email", "max@halden.example")
	owner.Fill("#f-name", "Max Weiss")
	owner.MustElement("#f-role").MustSelect("Approver: also answer approvals and secret requests")
	owner.Press("button.primary", "Add member")
	link := owner.MustElement("#once").MustProperty("value").Str()
	owner.Review("members-invited")
	owner.Go(w.URL + "/w/demo/settings/members")
	owner.Review("members")

	max := browser.New(t)
	max.Go(link)
	max.Review("password")
	max.Fill("#f-password", password)
	max.Press("button.primary", "Save password")
	max.Go(w.URL + "/w/demo/settings/members")
	max.See("h2", "Members")
	if n := len(max.MustElements("form[method=post] select")); n != 0 {
		t.Error("an approver sees forms to change roles")
	}
	max.Go(w.URL + "/admin/users")
	max.See("h1", "Not allowed")
	max.Review("error-403")
	max.Go(link)
	max.See("p", "This link is not valid any more")

	owner.Go(w.URL + "/admin/users")
	owner.Review("users")
	owner.Go(w.URL + "/w/demo/settings/members")
	owner.Press("a.danger", "Remove")
	owner.Review("members-remove")
	owner.Press("button.fill", "Remove member")
	owner.See(".note", "Member removed")
	max.Go(w.URL + "/w/demo/settings/members")
	max.See("h1", "Page not found")
	max.Go(w.URL + "/")
	max.See("h2", "No workspace yet")
	max.Review("workspaces-none")
}
