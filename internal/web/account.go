package web

import (
	"net/http"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/account"
)

// accountView is the page of the visitor's own account.
type accountView struct {
	Profile  *form
	Password *form
	Sessions []account.Session
}

func (a *App) accountPage(w http.ResponseWriter, p *page) error {
	return a.showAccount(w, p, http.StatusOK, accountView{})
}

func (a *App) showAccount(w http.ResponseWriter, p *page, status int, view accountView) error {
	var err error
	if view.Sessions, err = a.accounts.Sessions(p.Context(), p.Visitor.ID); err != nil {
		return err
	}
	if view.Profile == nil {
		view.Profile = emptyForm("name", p.Visitor.User.Name, "email", p.Visitor.Email)
	}
	if view.Password == nil {
		view.Password = emptyForm()
	}
	return a.renderStatus(w, p, status, "account", view)
}

// changeAccount serves the forms of the account page.
func (a *App) changeAccount(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	id := p.Visitor.ID
	switch f.Value("do") {
	case "profile":
		name := f.Value("name")
		if _, err := a.accounts.Update(p.Context(), id, account.UserChange{Name: &name}); err != nil {
			if err := f.take(err, "name"); err != nil {
				return err
			}
			f.Values.Set("email", p.Visitor.Email)
			return a.showAccount(w, p, http.StatusUnprocessableEntity, accountView{Profile: f})
		}
		p.flash(w, "Name saved.")
	case "password":
		return a.changePassword(w, p, f)
	case "end":
		if err := a.accounts.End(p.Context(), id, f.Value("session")); err != nil {
			return err
		}
		p.flash(w, "Browser signed out. Its streams were closed.")
	case "others":
		n, err := a.accounts.EndOthers(p.Context(), id, p.Visitor.Session)
		if err != nil {
			return err
		}
		p.flash(w, plural(n, "other browser", "other browsers")+" signed out.")
	default:
		return unknownForm()
	}
	return p.redirect(w, "/account")
}

// changePassword replaces the password. The present one may be tried as often as at the sign-in.
func (a *App) changePassword(w http.ResponseWriter, p *page, f *form) error {
	_, err := a.countTry(p, p.Visitor.Email)
	if f.Note = tooMany(err); f.Note != "" {
		return a.showAccount(w, p, http.StatusTooManyRequests, accountView{Password: f})
	}
	if err == nil {
		err = a.accounts.ChangePassword(p.Context(), p.Visitor.ID, f.Value("present"), f.Value("password"), p.Visitor.Session)
	}
	if err != nil {
		if err := f.take(err, "present", "password"); err != nil {
			return err
		}
		return a.showAccount(w, p, http.StatusUnprocessableEntity, accountView{Password: f})
	}
	p.flash(w, "Password changed. Your other browsers were signed out.")
	return p.redirect(w, "/account")
}

// unknownForm is the error of a form that this release does not have.
func unknownForm() error {
	return fault.New(fault.InvalidRequestBody, "This form is not known. Open the page again and repeat your change.")
}

// browserName returns the family of a browser or client in a User-Agent header.
func browserName(agent string) string {
	for _, known := range []struct{ part, name string }{
		{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"},
	} {
		if strings.Contains(agent, known.part) {
			return known.name + onSystem(agent)
		}
	}
	name, _, _ := strings.Cut(agent, "/")
	if name == "" || len(name) > 40 {
		return "Unknown client"
	}
	return name
}

func onSystem(agent string) string {
	for _, known := range []struct{ part, name string }{
		{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"},
		{"Linux", "Linux"},
	} {
		if strings.Contains(agent, known.part) {
			return " on " + known.name
		}
	}
	return ""
}
