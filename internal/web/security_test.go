package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
)

// request sends a request with a cookie and returns the response without its body.
func (w *world) request(t *testing.T, method, path string, c *http.Cookie, header http.Header) *http.Response {
	t.Helper()
	body := strings.NewReader(url.Values{"do": {"none"}}.Encode())
	r, err := http.NewRequestWithContext(t.Context(), method, w.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, values := range header {
		r.Header[name] = values
	}
	if c != nil {
		r.AddCookie(c)
	}
	client := &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res
}

// placeholders are the parts of a path that name an object.
var placeholders = regexp.MustCompile(`\{\w+\}`)

// TestRolesAreEnforcedOnEveryRoute asks for every page of the table, without a user, as a user who is
// not a member, and with each role: a page or a form that the role does not allow is never served.
func TestRolesAreEnforcedOnEveryRoute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.Accounts.Create(t.Context(), account.NewUser{Email: "admin@halden.example", Password: password, Admin: true}); err != nil {
		t.Fatal(err)
	}
	stranger := w.cookie(t, account.NewUser{Email: "stranger@halden.example"}, "")
	roles := make(map[apikey.Role]*http.Cookie)
	for _, role := range apikey.Roles {
		roles[role] = w.cookie(t, account.NewUser{Email: string(role) + "@halden.example"}, role)
	}
	checked := 0
	for _, rt := range table() {
		if rt.public {
			continue
		}
		path := placeholders.ReplaceAllString(strings.ReplaceAll(rt.path, "{ws}", "demo"), "00000000-0000-0000-0000-000000000000")
		inside := strings.Contains(rt.path, "{ws}")
		for method, need := range map[string]apikey.Scope{http.MethodGet: rt.scope, http.MethodPost: rt.change} {
			if method == http.MethodGet && rt.get == nil || method == http.MethodPost && rt.post == nil {
				continue
			}
			checked++
			if method == http.MethodPost && inside && need == "" {
				t.Errorf("the forms of %s need no scope", rt.path)
			}
			if res := w.request(t, method, path, nil, nil); res.StatusCode != http.StatusSeeOther ||
				!strings.HasPrefix(res.Header.Get("Location"), "/login") {
				t.Errorf("%s %s without a user: %d", method, path, res.StatusCode)
			}
			if res := w.request(t, method, path, stranger, nil); inside && res.StatusCode != http.StatusNotFound {
				t.Errorf("%s %s as a stranger: %d", method, path, res.StatusCode)
			}
			for role, c := range roles {
				res := w.request(t, method, path, c, nil)
				denied := rt.admin || need != "" && !role.Scopes().Allows(need)
				if got := res.StatusCode == http.StatusForbidden; got != denied && (denied || inside) {
					t.Errorf("%s %s as %s: %d", method, path, role, res.StatusCode)
				}
				if csp := res.Header.Get("Content-Security-Policy"); csp != policy {
					t.Errorf("%s %s: Content-Security-Policy %q", method, path, csp)
				}
			}
		}
	}
	if checked < 8 {
		t.Errorf("only %d pages were checked", checked)
	}
}

// TestFormsOfOtherSitesAreRejected sends forms and API requests with a user's cookie as a page of
// another site does.
func TestFormsOfOtherSitesAreRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.cookie(t, account.NewUser{Email: "anna@halden.example"}, apikey.Owner)
	foreign := http.Header{"Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}}
	for _, path := range []string{"/account", "/login", "/w/demo/settings/members", "/w/demo/settings/developer",
		"/api/v1/workspaces/demo/messages"} {
		if res := w.request(t, http.MethodPost, path, c, foreign); res.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	if res := w.request(t, http.MethodGet, "/api/v1/workspaces/demo/sessions", c,
		http.Header{"Sec-Fetch-Site": {"same-origin"}}); res.StatusCode != http.StatusOK {
		t.Errorf("the API with the cookie: %d", res.StatusCode)
	}
	in, ok, err := w.Accounts.Authenticate(t.Context(), c.Value, "")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	ctx, stop := w.Accounts.While(t.Context(), in.Session)
	defer stop()
	if err := w.Accounts.End(t.Context(), in.ID, in.Session); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(30 * time.Second):
		t.Error("the streams of a browser that was signed out stay open")
	}
	if res := w.request(t, http.MethodGet, "/api/v1/workspaces/demo/sessions", c, nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the API after the sign-out: %d", res.StatusCode)
	}
}

// TestKeysAreShownOnce creates a key with a preset in the browser, uses it, rolls it and revokes it.
func TestKeysAreShownOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.signIn(t, account.NewUser{Email: "anna@halden.example", Name: "Anna Lindqvist"}, apikey.Owner)
	p.Go(w.URL + "/w/demo/settings/developer")
	p.Review("keys")
	p.Fill("#f-name", "Web site")
	p.Press("button.primary[type=submit]", "Create key")
	text := p.MustElement("#once").MustProperty("value").Str()
	p.Review("keys-once")
	use := func(key string) int {
		return w.request(t, http.MethodGet, "/api/v1/workspaces/demo/sessions", nil, http.Header{"Authorization": {"Bearer " + key}}).StatusCode
	}
	if status := use(text); status != http.StatusOK {
		t.Errorf("the new key: %d", status)
	}
	p.Press("a.btn", "I have stored it")
	if strings.Contains(p.MustHTML(), text) {
		t.Error("the page shows the key again")
	}
	p.Press("a[href='?revoke="+text[4:12]+"']", "Revoke")
	p.Review("keys-revoke")
	p.Press("button.fill", "Revoke key")
	p.See(".note", "Key revoked")
	if status := use(text); status != http.StatusUnauthorized {
		t.Errorf("the revoked key: %d", status)
	}
}
