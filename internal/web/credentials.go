package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/vault"
)

// credentialRow is a credential in the list.
type credentialRow struct {
	vault.Credential
	By       string
	LastUsed *time.Time // among the recent requests
	Users    []string   // the model providers and tool servers that are configured with it
}

// credentialsView is the page of the credentials of a workspace. A value is never in it.
type credentialsView struct {
	List   []credentialRow
	Form   *form
	Edit   *credentialRow // its form replaces the one of a new credential
	Delete *credentialRow // asks before this one is deleted
}

// recentRequests is how many requests are searched for the last use of a credential.
const recentRequests = 1000

func (a *App) credentialsPage(w http.ResponseWriter, p *page) error {
	return a.showCredentials(w, p, http.StatusOK, nil)
}

func (a *App) showCredentials(w http.ResponseWriter, p *page, status int, f *form) error {
	if a.srv.Vault == nil {
		return fault.New(fault.RouteNotFound, "This server has no credentials.")
	}
	list, err := a.srv.Vault.List(p.Context(), p.Workspace.ID)
	if err != nil {
		return err
	}
	used, err := a.lastUses(p)
	if err != nil {
		return err
	}
	users, err := a.credentialUsers(p)
	if err != nil {
		return err
	}
	view, names := credentialsView{Form: f, List: make([]credentialRow, len(list))}, newAsker(p)
	for i, c := range list {
		row := &view.List[i]
		*row = credentialRow{Credential: c, LastUsed: used[c.Name], Users: users[c.Name]}
		if row.By, err = names.name(p.Context(), strings.TrimPrefix(c.UpdatedBy, "key:")); err != nil {
			return err
		}
		if p.Can("admin") && p.URL.Query().Get("edit") == c.Name {
			view.Edit = row
		}
		if p.Can("admin") && p.URL.Query().Get("delete") == c.Name {
			view.Delete = row
		}
	}
	if view.Form == nil {
		view.Form = credentialForm(view.Edit)
	}
	return a.renderStatus(w, p, status, "credentials", view)
}

// credentialUsers returns the model providers and the enabled tool servers that are configured with a
// credential, by its name. The record of requests has no requests of model providers.
func (a *App) credentialUsers(p *page) (map[string][]string, error) {
	users := make(map[string][]string)
	providers, err := a.Modelset.List(p.Context(), p.Workspace.ID)
	if err != nil {
		return nil, err
	}
	for _, provider := range providers {
		users[provider.Credential] = append(users[provider.Credential], "model provider "+provider.Name)
	}
	servers, err := a.Toolset.List(p.Context(), p.Workspace.ID)
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		if !s.Enabled {
			continue
		}
		for _, name := range append(s.Secrets(), s.Auth.ClientSecret) {
			users[name] = append(users[name], "tool server "+s.Name)
		}
	}
	return users, nil
}

// lastUses returns when a tool last sent a credential, by its name.
func (a *App) lastUses(p *page) (map[string]*time.Time, error) {
	requests, err := a.Runner.Requests(p.Context(), p.Workspace.ID, nil, recentRequests)
	used := make(map[string]*time.Time)
	for _, r := range requests { // newest first
		for _, sent := range r.Credentials {
			name, _, _ := strings.Cut(sent, "@")
			if used[name] == nil {
				used[name] = &r.At
			}
		}
	}
	return used, err
}

// credentialForm returns the form of a credential, or of a new one.
func credentialForm(c *credentialRow) *form {
	f := emptyForm()
	if c == nil {
		return f
	}
	f.Values.Set("name", c.Name)
	f.Values.Set("allowed_hosts", strings.Join(c.Hosts, "\n"))
	for surface, on := range map[string]bool{"query": c.InQuery, "body": c.InBody, "http": c.AllowHTTP} {
		if on {
			f.Values.Add("surface", surface)
		}
	}
	return f
}

// changeCredentials serves the forms of the credentials page.
func (a *App) changeCredentials(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	value := f.Value("value")
	f.Values.Del("value") // it is not shown again
	by, done := "key:"+p.Visitor.ID, ""
	var err error
	switch {
	case a.srv.Vault == nil:
		return fault.New(fault.RouteNotFound, "This server has no credentials.")
	case f.Value("do") == "delete":
		if err := a.srv.Vault.Remove(p.Context(), p.Workspace.ID, f.Value("name"), by); err != nil {
			return err
		}
		done = "Credential deleted. Requests are sent without it from now on."
	case f.Value("do") == "save":
		r := vault.Registration{Name: strings.TrimSpace(f.Value("name")), Hosts: strings.Fields(f.Value("allowed_hosts")),
			InQuery: f.Has("surface", "query"), InBody: f.Has("surface", "body"), AllowHTTP: f.Has("surface", "http")}
		if value != "" {
			r.Value = vault.NewValue([]byte(value))
		}
		_, err = a.srv.Vault.Register(p.Context(), p.Workspace.ID, r, by)
		done = "Credential " + r.Name + " saved."
	default:
		return unknownForm()
	}
	if err != nil {
		if err := f.take(err, "name", "allowed_hosts", "value"); err != nil {
			return err
		}
		return a.showCredentials(w, p, http.StatusUnprocessableEntity, f)
	}
	p.flash(w, done)
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/settings/credentials")
}
