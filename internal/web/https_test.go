package web

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-rod/rod/lib/proto"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/sso"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/browser"
	"github.com/parley-server/parley/internal/testing/oidctest"
)

// TestUnderHTTPSWithAPath uses the application behind a proxy with TLS that serves it below a path:
// the session has a cookie that only this host can set and that never travels in the clear, and every
// page, file, form and request stays below the path.
func TestUnderHTTPSWithAPath(t *testing.T) {
	t.Parallel()
	const at = "/tools/parley"
	var proxy atomic.Pointer[httputil.ReverseProxy] // set before the first request
	front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, at+"/") {
			t.Errorf("a request outside of the path: %s", r.URL)
			http.NotFound(w, r)
			return
		}
		http.StripPrefix(at, proxy.Load()).ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	w := serveConfigured(t, apitest.New(t, apitest.Options{}), func(c *server.Config) { c.BaseURL = front.URL + at })
	target, err := url.Parse(w.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy.Store(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}})
	identity := oidctest.New(t)
	w.app.Provider = sso.New(sso.Config{Issuer: identity.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret,
		Name: "Halden SSO"})
	if _, err := w.Accounts.Create(t.Context(), account.NewUser{Email: "anna@halden.example", Name: "Anna Lindqvist", Password: password,
		Admin: true}); err != nil {
		t.Fatal(err)
	}

	p := browser.New(t)
	if err := (proto.SecuritySetIgnoreCertificateErrors{Ignore: true}).Call(p); err != nil {
		t.Fatal(err)
	}
	p.Go(front.URL + at + "/w/demo/chat")
	p.See("a.btn", "Continue with Halden SSO")
	p.Review("login-oidc")
	p.Fill("#f-email", "anna@halden.example")
	p.Fill("#f-password", password)
	p.Press("button.primary", "Sign in")
	find(t, p, "#msg")
	if got := p.Path(); got != at+"/w/demo/chat" {
		t.Errorf("signed in at %s", got)
	}
	cookies, err := p.Cookies([]string{front.URL + "/"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cookies {
		if !c.Secure || c.Path != "/" || strings.HasPrefix(c.Name, "__Host-") != c.HTTPOnly {
			t.Errorf("the cookie %s: %+v", c.Name, c)
		}
	}
	if names := strings.Join(p.CookieNames(), " "); !strings.Contains(names, "__Host-parley_session") || strings.Contains(" "+names,
		" parley_session") {
		t.Errorf("cookies: %s", names)
	}
	send(t, p, "@say It works here.")
	p.See(".prose", "It works here.")
	for _, path := range []string{"sessions", "approvals", "settings/developer", "settings/developer/connect"} {
		p.Go(front.URL + at + "/w/demo/" + path)
	}
	p.See("li", front.URL+at+"/openai/v1")
	p.Go(front.URL + at + "/docs/guides/browser")
	p.See("h1", "Chat from a browser")
	for _, href := range p.MustEval(`() => [...document.querySelectorAll("a[href^='/']")].map((a) => a.getAttribute("href"))`).Arr() {
		if !strings.HasPrefix(href.Str(), at+"/") {
			t.Errorf("a link leaves the path: %s", href.Str())
		}
	}
	p.Go(front.URL + at + "/account")
	p.MustEval(`() => document.querySelector("form[action$='/logout']").requestSubmit()`)
	p.See("button.primary", "Sign in")
	if names := strings.Join(p.CookieNames(), " "); strings.Contains(names, "parley_session") {
		t.Errorf("cookies after signing out: %s", names)
	}
}
