package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
)

const themeCookie = "parley_theme"

// start leads a member to the only or first workspace.
func (a *App) start(w http.ResponseWriter, p *page) error {
	list, err := a.workspacesOf(p)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return p.redirect(w, "/workspaces")
	}
	return p.redirect(w, "/w/"+list[0].Slug)
}

// workspaceStart leads to the first page of a workspace that the role may open.
func (a *App) workspaceStart(w http.ResponseWriter, p *page) error {
	for _, group := range p.Nav() {
		for _, link := range group.Links {
			if strings.Contains(link.path, "{ws}") {
				return p.redirect(w, strings.TrimPrefix(link.Href, a.root))
			}
		}
	}
	return p.redirect(w, "/account")
}

// workspacesOf lists the workspaces of a visitor.
func (a *App) workspacesOf(p *page) ([]account.Membership, error) {
	if !p.Visitor.Admin {
		return a.accounts.Memberships(p.Context(), p.Visitor.ID)
	}
	all, err := a.srv.Workspaces.List(p.Context())
	list := make([]account.Membership, len(all))
	for i, ws := range all {
		list[i] = account.Membership{Workspace: ws.ID, Slug: ws.Slug, Name: ws.Name, Role: apikey.Owner}
	}
	return list, err
}

func (a *App) workspacesPage(w http.ResponseWriter, p *page) error {
	return a.showWorkspaces(w, p, http.StatusOK, emptyForm())
}

func (a *App) showWorkspaces(w http.ResponseWriter, p *page, status int, f *form) error {
	list, err := a.workspacesOf(p)
	if err != nil {
		return err
	}
	return a.renderStatus(w, p, status, "workspaces", struct {
		List []account.Membership
		Form *form
	}{list, f})
}

// createWorkspace creates a workspace for an administrator of the server.
func (a *App) createWorkspace(w http.ResponseWriter, p *page) error {
	if !p.Visitor.Admin {
		return fault.New(fault.InsufficientScope, "Only administrators of the server create workspaces.")
	}
	f := newForm(p)
	ws, err := a.srv.Workspaces.Create(p.Context(), strings.TrimSpace(f.Value("slug")), strings.TrimSpace(f.Value("name")), "")
	if err != nil {
		if err := f.take(err, "slug", "name"); err != nil {
			return err
		}
		return a.showWorkspaces(w, p, http.StatusUnprocessableEntity, f)
	}
	p.flash(w, "Workspace "+ws.Slug+" created.")
	return p.redirect(w, "/w/"+ws.Slug)
}

// sendToLogin asks for the password and remembers the page. While the server has no administrator it
// asks to create one.
func (a *App) sendToLogin(w http.ResponseWriter, r *http.Request) error {
	exists, err := a.accounts.HasAdmin(r.Context())
	if err != nil {
		return err
	}
	if !exists && !a.groupsGrantAdmin() {
		http.Redirect(w, r, a.root+"/setup", http.StatusSeeOther)
		return nil
	}
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
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") ||
		strings.ContainsAny(next, "\\\r\n\t") {
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
		SameSite: http.SameSiteLaxMode, Secure: a.srv.IsSecure(p.Request)})
	return p.redirect(w, strings.TrimPrefix(nextPath(p.PostForm.Get("next")), a.root))
}

// NextTheme is the theme that the button chooses.
func (p *page) NextTheme() string {
	return map[string]string{"": "light", "light": "dark", "dark": ""}[p.Theme()]
}
