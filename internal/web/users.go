package web

import (
	"net/http"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/account"
)

// usersView is the page of all users of the server.
type usersView struct {
	List []account.User
	Form *form
	Link string // with which a user sets a password, shown once
	For  string // address of that user
}

func (a *App) usersPage(w http.ResponseWriter, p *page) error {
	return a.showUsers(w, p, http.StatusOK, usersView{})
}

func (a *App) showUsers(w http.ResponseWriter, p *page, status int, view usersView) error {
	var err error
	if view.List, err = a.accounts.Users(p.Context()); err != nil {
		return err
	}
	if view.Form == nil {
		view.Form = emptyForm()
	}
	return a.renderStatus(w, p, status, "users", view)
}

// changeUsers serves the forms of the users page.
func (a *App) changeUsers(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	yes, no := true, false
	var change account.UserChange
	var done string
	switch f.Value("do") {
	case "create":
		return a.createUser(w, p, f)
	case "link":
		return a.resetPassword(w, p, f.Value("user"))
	case "admin":
		change.Admin, done = &yes, "User is an administrator of the server now."
	case "not-admin":
		change.Admin, done = &no, "User is not an administrator of the server any more."
	case "disable":
		change.Disabled, done = &yes, "User disabled and signed out everywhere."
	case "enable":
		change.Disabled, done = &no, "User can sign in again."
	default:
		return unknownForm()
	}
	if _, err := a.accounts.Update(p.Context(), f.Value("user"), change); err != nil {
		empty := emptyForm()
		if err := empty.take(err); err != nil {
			return err
		}
		return a.showUsers(w, p, http.StatusUnprocessableEntity, usersView{Form: empty})
	}
	p.flash(w, done)
	return p.redirect(w, "/admin/users")
}

func (a *App) createUser(w http.ResponseWriter, p *page, f *form) error {
	u, err := a.accounts.Create(p.Context(), account.NewUser{Email: f.Value("email"), Name: f.Value("name"), Admin: f.Has("is_admin", "yes")})
	if err != nil {
		if err := f.take(err, "email", "name"); err != nil {
			return err
		}
		return a.showUsers(w, p, http.StatusUnprocessableEntity, usersView{Form: f})
	}
	return a.resetPassword(w, p, u.ID)
}

// resetPassword shows a link with which a user sets a password. The present one works until then.
func (a *App) resetPassword(w http.ResponseWriter, p *page, id string) error {
	u, err := a.accounts.User(p.Context(), id)
	if err != nil {
		return err
	}
	if u.Disabled {
		return fault.New(fault.InvalidRequestBody, "This user is disabled. Enable the user first.")
	}
	text, err := a.accounts.NewPasswordToken(p.Context(), u.ID)
	if err != nil {
		return err
	}
	return a.showUsers(w, p, http.StatusOK, usersView{Link: a.passwordLink(p, text), For: u.Email})
}
