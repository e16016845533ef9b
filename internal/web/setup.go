package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/workspace"
)

// setupView is the page for the first administrator.
type setupView struct {
	*form
	Expires time.Time // zero: the token is missing or not valid
}

func (a *App) setupPage(w http.ResponseWriter, p *page) error {
	exists, err := a.accounts.HasAdmin(p.Context())
	if err != nil {
		return err
	}
	if exists {
		return p.redirect(w, "/login")
	}
	f := emptyForm("token", p.URL.Query().Get("token"))
	list, err := a.srv.Workspaces.List(p.Context())
	if err != nil {
		return err
	}
	view := setupView{form: f}
	if f.Value("token") != "" {
		if view.Expires, err = a.accounts.SetupExpiry(p.Context(), f.Value("token")); err != nil {
			if err := f.take(err, "token"); err != nil {
				return err
			}
		} else if len(list) > 0 { // names are for those who have the token
			f.Values.Set("workspace", list[0].Slug)
		}
	}
	return a.render(w, p, "setup", view)
}

// setup creates the first administrator and a workspace.
func (a *App) setup(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	if _, err := a.countTry(p, ""); err != nil { // tokens are as precious as passwords
		if f.Note = tooMany(err); f.Note == "" {
			return err
		}
		return a.renderStatus(w, p, http.StatusTooManyRequests, "setup", setupView{form: f})
	}
	expires, err := a.accounts.SetupExpiry(p.Context(), f.Value("token"))
	if err == nil {
		var ws workspace.Workspace
		if ws, err = a.findOrCreate(p.Context(), strings.TrimSpace(f.Value("workspace"))); err == nil {
			var u account.User
			u, err = a.accounts.Setup(p.Context(), f.Value("token"), account.NewUser{Email: f.Value("email"), Name: f.Value("name"),
				Password: f.Value("password")})
			if err == nil {
				return a.signIn(w, p, u, a.root+"/w/"+ws.Slug)
			}
		}
	}
	if errors.Is(err, account.ErrAdminExists) {
		return p.redirect(w, "/login")
	}
	if err := f.take(err, "token", "email", "name", "password", "workspace"); err != nil {
		return err
	}
	return a.renderStatus(w, p, http.StatusUnprocessableEntity, "setup", setupView{f, expires})
}

// findOrCreate returns the workspace with a slug.
func (a *App) findOrCreate(ctx context.Context, slug string) (workspace.Workspace, error) {
	ws, err := a.srv.Workspaces.Find(ctx, slug)
	if f := fault.From(err); f == nil || f.Code != fault.WorkspaceNotFound {
		return ws, err
	}
	ws, err = a.srv.Workspaces.Create(ctx, slug, "", "")
	if f := fault.From(err); f != nil {
		for i := range f.Detail.Violations {
			f.Detail.Violations[i].Param = "/workspace"
		}
	}
	return ws, err
}

// passwordPage asks a user with a link for a new password.
func (a *App) passwordPage(w http.ResponseWriter, p *page) error {
	return a.showPassword(w, p, http.StatusOK, emptyForm("token", p.URL.Query().Get("token")))
}

func (a *App) showPassword(w http.ResponseWriter, p *page, status int, f *form) error {
	u, err := a.accounts.Invited(p.Context(), f.Value("token"))
	if err != nil {
		return err
	}
	return a.renderStatus(w, p, status, "password", struct {
		*form
		User account.User
	}{f, u})
}

// setPassword stores the password of a link's user and signs in.
func (a *App) setPassword(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	u, err := a.accounts.TakeInvitation(p.Context(), f.Value("token"), f.Value("password"))
	if err != nil {
		if err := f.take(err, "password"); err != nil {
			return err
		}
		return a.showPassword(w, p, http.StatusUnprocessableEntity, f)
	}
	return a.signIn(w, p, u, "/")
}
