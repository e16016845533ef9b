package web

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/sso"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/oidctest"
)

// newProvider starts a provider and a server that uses it.
func newProvider(t *testing.T) (*world, *oidctest.Provider) {
	t.Helper()
	at := oidctest.New(t)
	rules, err := sso.ParseRules([]string{"admins=owner@*", "support=approver@demo", "it=admin", "cn=readers=viewer@demo"})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.app.Provider = sso.New(sso.Config{Issuer: at.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, Roles: rules,
		Name: "Halden SSO"})
	if _, err := w.Accounts.Create(t.Context(), account.NewUser{Email: "root@halden.example", Password: password, Admin: true}); err != nil {
		t.Fatal(err)
	}
	return w, at
}

// visitor is a browser that follows no redirect by itself.
type visitor struct {
	*http.Client
	w *world
}

func (w *world) visitor(t *testing.T) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{&http.Client{Jar: jar, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}, w}
}

// open returns the status, the redirect and the text of a page.
func (v *visitor) open(t *testing.T, address string) (status int, to, body string) {
	t.Helper()
	res, err := v.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Location"), string(data)
}

// begin goes to the provider and returns the address that the provider sends the browser back to.
func (v *visitor) begin(t *testing.T) string {
	t.Helper()
	status, to, body := v.open(t, v.w.URL+"/login/oidc?next=/account")
	if status != http.StatusSeeOther {
		t.Fatalf("the sign-in did not begin: %d %s", status, body)
	}
	_, back, body := v.open(t, to)
	if !strings.HasPrefix(back, v.w.URL+"/login/oidc/callback?") {
		t.Fatalf("the provider leads to %q: %s", back, body)
	}
	return back
}

// session returns the session cookie, "" if the browser is not signed in.
func (v *visitor) session(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(v.w.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Jar.Cookies(u) {
		if c.Name == "parley_session" {
			return c.Value
		}
	}
	return ""
}

// signIn signs in at the provider.
func (v *visitor) signIn(t *testing.T) {
	t.Helper()
	if status, to, body := v.open(t, v.begin(t)); status != http.StatusSeeOther || to != "/account" || v.session(t) == "" {
		t.Fatalf("sign-in: %d %q %s", status, to, body)
	}
}

// role returns the user with an address and the role in the workspace demo.
func (w *world) role(t *testing.T, email string) (account.User, apikey.Role) {
	t.Helper()
	u, err := w.Accounts.User(t.Context(), email)
	if err != nil {
		t.Fatal(err)
	}
	role, _, err := w.Accounts.RoleIn(t.Context(), u, "demo")
	if err != nil {
		t.Fatal(err)
	}
	return u, role
}

// TestGroupsDecideRoles signs in at the provider again and again while the groups change: the first
// time creates the member, each time sets the role, and without a group there is no sign-in.
func TestGroupsDecideRoles(t *testing.T) {
	t.Parallel()
	w, at := newProvider(t)
	v := w.visitor(t)
	if _, _, body := v.open(t, w.URL+"/login?next=/account"); !strings.Contains(body, "Continue with Halden SSO") ||
		!strings.Contains(body, "/login/oidc?next=%2faccount") {
		t.Errorf("the sign-in page has no button: %s", body)
	}
	for _, step := range []struct {
		groups []string
		role   apikey.Role
		admin  bool
	}{
		{[]string{"support"}, apikey.Approver, false},
		{[]string{"support", "admins", "other"}, apikey.Owner, false},
		{[]string{"cn=readers"}, apikey.Viewer, false},
		{[]string{"it"}, apikey.Owner, true},
		{[]string{"support"}, apikey.Approver, false},
	} {
		at.SignIn("1", "anna@halden.example", true, step.groups...)
		v.signIn(t)
		if u, role := w.role(t, "anna@halden.example"); role != step.role || u.Admin != step.admin || u.Name != "User 1" {
			t.Errorf("with the groups %q: %+v is %q", step.groups, u, role)
		}
	}

	at.SignIn("1", "anna@halden.example", true, "other")
	if status, _, body := w.visitor(t).open(t, w.visitor(t).begin(t)); status != http.StatusForbidden {
		t.Errorf("a callback in another browser: %d %s", status, body)
	}
	other := w.visitor(t)
	if status, _, body := other.open(t, other.begin(t)); status != http.StatusForbidden ||
		!strings.Contains(body, "your groups there give you no role") || other.session(t) != "" {
		t.Errorf("a sign-in without a role: %d %s", status, body)
	}
	if _, role := w.role(t, "anna@halden.example"); role != "" {
		t.Errorf("without groups the role is %q", role)
	}
	if status, _, _ := v.open(t, w.URL+"/w/demo/sessions"); status != http.StatusNotFound {
		t.Errorf("the browser that is signed in still opens the workspace: %d", status)
	}
	at.SignIn("2", "none@halden.example", true)
	other.open(t, other.begin(t))
	if _, err := w.Accounts.User(t.Context(), "none@halden.example"); err == nil {
		t.Error("a sign-in without a role created a user")
	}
}

// TestIdentitiesAreLinkedByVerifiedAddress signs in with the address of a user who has a password.
func TestIdentitiesAreLinkedByVerifiedAddress(t *testing.T) {
	t.Parallel()
	w, at := newProvider(t)
	w.app.Provider.AcceptUnverified = true
	old, err := w.Accounts.Create(t.Context(), account.NewUser{Email: "max@halden.example", Password: password})
	if err != nil {
		t.Fatal(err)
	}
	v := w.visitor(t)
	at.SignIn("1", "Max@halden.example", false, "support")
	if status, _, body := v.open(t, v.begin(t)); status != http.StatusForbidden || !strings.Contains(body, "has not verified the address") {
		t.Errorf("an address that is not verified signs in a user who exists: %d %s", status, body)
	}
	at.SignIn("1", "Max@halden.example", true, "support")
	v.signIn(t)
	if u, role := w.role(t, "max@halden.example"); u.ID != old.ID || !u.OIDC || !u.HasPassword || role != apikey.Approver {
		t.Errorf("the identity belongs to %+v, not to %s, as %q", u, old.ID, role)
	}
	at.SignIn("2", "max@halden.example", true, "admins")
	if status, _, body := v.open(t, v.begin(t)); status != http.StatusForbidden || !strings.Contains(body, "belongs to another identity") {
		t.Errorf("a second identity with the address: %d %s", status, body)
	}
	at.SignIn("3", "new@halden.example", false, "support")
	v.signIn(t)
	w.app.Provider.AcceptUnverified = false
	at.SignIn("4", "newer@halden.example", false, "support")
	if status, _, body := v.open(t, v.begin(t)); status != http.StatusForbidden || !strings.Contains(body, "has not verified the address") {
		t.Errorf("an address that is not verified: %d %s", status, body)
	}
	disabled := true
	if _, err := w.Accounts.Update(t.Context(), old.ID, account.UserChange{Disabled: &disabled}); err != nil {
		t.Fatal(err)
	}
	at.SignIn("1", "max@halden.example", true, "support")
	if status, _, body := v.open(t, v.begin(t)); status != http.StatusForbidden || !strings.Contains(body, "disabled") {
		t.Errorf("a disabled user: %d %s", status, body)
	}
}

// replace returns an address with another parameter.
func replace(t *testing.T, address, name, value string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

func parameter(t *testing.T, address, name string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get(name)
}

// TestForgedSignInsAreRefused returns from the provider with everything that an attacker can change.
func TestForgedSignInsAreRefused(t *testing.T) {
	t.Parallel()
	w, at := newProvider(t)
	at.SignIn("1", "anna@halden.example", true, "support")
	used := w.visitor(t)
	spent := used.begin(t)
	if status, _, body := used.open(t, spent); status != http.StatusSeeOther {
		t.Fatalf("sign-in: %d %s", status, body)
	}
	claim := func(name string, value any) func(*visitor) string {
		return func(v *visitor) string {
			at.Change(func(claims map[string]any) { claims[name] = value })
			return v.begin(t)
		}
	}
	for name, prepare := range map[string]func(v *visitor) string{
		"state":           func(v *visitor) string { return replace(t, v.begin(t), "state", "other") },
		"no state":        func(v *visitor) string { return replace(t, v.begin(t), "state", "") },
		"another browser": func(*visitor) string { return w.visitor(t).begin(t) },
		"an older flow":   func(v *visitor) string { first := v.begin(t); v.begin(t); return first },
		"an old flow": func(v *visitor) string {
			back := v.begin(t)
			if _, err := w.Pool.Exec(t.Context(), "UPDATE oidc_states SET expires_at = now()"); err != nil {
				t.Fatal(err)
			}
			return back
		},
		"nonce":         claim("nonce", "other"),
		"no nonce":      claim("nonce", ""),
		"audience":      claim("aud", "other"),
		"authorized":    claim("azp", "other"),
		"issuer":        claim("iss", "https://evil.example"),
		"expired token": claim("exp", time.Now().Add(-time.Minute).Unix()),
		"expired code":  func(v *visitor) string { back := v.begin(t); at.ExpireCodes(); return back },
		"replayed code": func(v *visitor) string { return replace(t, v.begin(t), "code", parameter(t, spent, "code")) },
		"stolen code": func(v *visitor) string {
			return replace(t, v.begin(t), "code", parameter(t, w.visitor(t).begin(t), "code"))
		},
		"provider error": func(v *visitor) string { return replace(t, v.begin(t), "error", "access_denied") },
		"signature":      func(v *visitor) string { at.Rotate(false); return v.begin(t) },
	} {
		v := w.visitor(t)
		back := prepare(v)
		status, _, body := v.open(t, back)
		if status/100 != 4 || !strings.Contains(body, "role=\"alert\"") && !strings.Contains(body, "note") || v.session(t) != "" {
			t.Errorf("%s: %d %s", name, status, body)
		}
		at.Change(nil)
		at.Rotate(true)
	}
	if status, _, _ := used.open(t, spent); status/100 != 4 {
		t.Errorf("the same callback again: %d", status)
	}
	w.visitor(t).signIn(t) // with the key of the last rotation
	var users int
	if err := w.Pool.QueryRow(t.Context(), "SELECT count(*) FROM users").Scan(&users); err != nil || users != 2 {
		t.Errorf("%d users, %v", users, err)
	}
}

// TestSignInReplacesThePlantedSession signs in with a browser that has the cookie of an attacker.
func TestSignInReplacesThePlantedSession(t *testing.T) {
	t.Parallel()
	w, at := newProvider(t)
	planted := w.cookie(t, account.NewUser{Email: "eve@halden.example"}, apikey.Viewer)
	v := w.visitor(t)
	u, err := url.Parse(w.URL)
	if err != nil {
		t.Fatal(err)
	}
	v.Jar.SetCookies(u, []*http.Cookie{planted})
	at.SignIn("1", "anna@halden.example", true, "support")
	v.signIn(t)
	if v.session(t) == planted.Value {
		t.Error("the sign-in kept the cookie")
	}
	if in, ok, err := w.Accounts.Authenticate(t.Context(), planted.Value, ""); ok || err != nil {
		t.Errorf("the planted cookie is still that of %s, %v", in.Email, err)
	}
	if in, ok, err := w.Accounts.Authenticate(t.Context(), v.session(t), ""); !ok || err != nil || in.Email != "anna@halden.example" {
		t.Errorf("the new cookie is that of %q, %v", in.Email, err)
	}
}

// TestPasswordsWorkWithoutTheProvider breaks off the provider before and during a sign-in.
func TestPasswordsWorkWithoutTheProvider(t *testing.T) {
	t.Parallel()
	w, at := newProvider(t)
	at.SetDown(true)
	v := w.visitor(t)
	status, _, body := v.open(t, w.URL+"/login/oidc?next=/account")
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "Cannot reach Halden SSO") ||
		!strings.Contains(body, `name="password"`) {
		t.Errorf("the provider is down: %d %s", status, body)
	}
	res, err := v.PostForm(w.URL+"/login", url.Values{"email": {"root@halden.example"}, "password": {password}})
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusSeeOther || v.session(t) == "" {
		t.Errorf("sign-in with a password: %d", res.StatusCode)
	}
	at.SetDown(false)
	at.SignIn("1", "anna@halden.example", true, "support")
	other := w.visitor(t)
	back := other.begin(t)
	at.SetDown(true)
	if status, _, body := other.open(t, back); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, "Cannot reach Halden SSO") || other.session(t) != "" {
		t.Errorf("the provider went down: %d %s", status, body)
	}
	at.SetDown(false)
	other.signIn(t)
}
