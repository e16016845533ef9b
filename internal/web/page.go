package web

import (
	"net/http"
	"strings"

	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/workspace"
)

// Visitor is a signed-in user.
type Visitor struct {
	ID    string
	Name  string
	Email string
	Admin bool // of the server
	User  account.User

	Session string // web session
}

// page is a request for a page, checked. Templates get it as the view's fields.
type page struct {
	*http.Request
	App       *App
	Visitor   *Visitor            // nil on public pages without a session
	Workspace workspace.Workspace // zero outside of /w/
	Role      apikey.Role         // of the visitor in the workspace
	Scopes    apikey.Scopes
	Section   string // entry of the navigation

	sent []*form // that the request was sent with
}

// Problems are the errors of the fields of the forms that were sent, in their order.
func (p *page) Problems() (list []fieldError) {
	for _, f := range p.sent {
		list = append(list, f.list...)
	}
	return list
}

// Can reports whether the visitor has a scope in the workspace.
func (p *page) Can(scope string) bool { return p.Scopes.Allows(apikey.Scope(scope)) }

// Root is the path before every link.
func (p *page) Root() string { return p.App.root }

// Home is the path of the workspace.
func (p *page) Home() string { return p.App.root + "/w/" + p.Workspace.Slug }

// Base is the public address of the server, for commands to copy.
func (p *page) Base() string { return p.App.srv.Base(p.Request) }

// API is the address of the workspace in the API.
func (p *page) API() string { return p.Base() + "/api/v1/workspaces/" + p.Workspace.Slug }

// Here is the path of the page itself, with its query.
func (p *page) Here() string { return p.App.root + p.URL.RequestURI() }

// Version is the version of the server.
func (p *page) Version() string { return p.App.srv.Version }

// Asset returns the address of a static file.
func (p *page) Asset(name string) string { return p.App.root + p.App.assets.path(name) }

// Theme is light, dark or "", which follows the system.
func (p *page) Theme() string {
	if c, err := p.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

// Initials are the letters of the avatar.
func (v *Visitor) Initials() string {
	words := strings.Fields(v.Name)
	if len(words) == 0 {
		words = []string{v.Email}
	}
	first := func(s string) string { return strings.ToUpper(string([]rune(s)[:1])) }
	if len(words) == 1 {
		return first(words[0])
	}
	return first(words[0]) + first(words[len(words)-1])
}

// redirect sends the browser to another page of the application after a form.
func (p *page) redirect(w http.ResponseWriter, path string) error {
	http.Redirect(w, p.Request, p.App.root+path, http.StatusSeeOther)
	return nil
}
