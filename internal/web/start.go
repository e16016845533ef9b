package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

const themeCookie = "parley_theme"

// start leads a member to a workspace.
func (a *App) start(w http.ResponseWriter, p *page) error {
	return p.redirect(w, "/workspaces")
}

// sendToLogin asks for the password and remembers the page.
func (a *App) sendToLogin(w http.ResponseWriter, r *http.Request) error {
	target := a.root + "/login"
	if r.Method == http.MethodGet && r.URL.Path != "/" {
		target += "?next=" + url.QueryEscape(r.URL.RequestURI())
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
	return nil
}

// nextPath returns where a visitor wanted to go: a path of this server, else /.
func nextPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}

// setTheme stores the colours that a visitor chose.
func (a *App) setTheme(w http.ResponseWriter, p *page) error {
	theme := p.PostForm.Get("theme")
	if theme != "light" && theme != "dark" {
		theme = ""
	}
	http.SetCookie(w, &http.Cookie{Name: themeCookie, Value: theme, Path: "/", Expires: time.Now().AddDate(1, 0, 0),
		SameSite: http.SameSiteLaxMode, Secure: a.secure(p.Request)})
	return p.redirect(w, strings.TrimPrefix(nextPath(p.PostForm.Get("next")), a.root))
}

// NextTheme is the theme that the button chooses.
func (p *page) NextTheme() string {
	return map[string]string{"": "light", "light": "dark", "dark": ""}[p.Theme()]
}

// secure reports whether the browser speaks https with the server, or with a proxy before it.
func (a *App) secure(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(strings.ToLower(a.srv.BaseURL), "https://")
}

func (a *App) loginPage(w http.ResponseWriter, p *page) error {
	return a.render(w, p, "login", emptyForm())
}
