package web

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/store/apikey"
)

// tokenAccess are the rights that a personal token may have, within those of the role.
var tokenAccess = []option{{"role", "Everything that my role allows"}, {"chat", "Send messages and read sessions"},
	{"read", "Read sessions only"}}

// tokensView is the page of the visitor's personal tokens.
type tokensView struct {
	List   []keyRow
	Form   *form
	Lives  []option
	Access []option
	Text   string // of a new token, shown once
	New    apikey.Key
	Revoke *keyRow // asks before this token is revoked
}

func (a *App) tokensPage(w http.ResponseWriter, p *page) error {
	return a.showTokens(w, p, http.StatusOK, tokensView{})
}

func (a *App) showTokens(w http.ResponseWriter, p *page, status int, view tokensView) error {
	keys, err := a.srv.Keys.List(p.Context(), p.Workspace.ID)
	if err != nil {
		return err
	}
	for _, k := range slices.Backward(keys) {
		row := keyRowOf(k, map[string]string{p.Visitor.ID: p.Visitor.Name}, time.Now())
		if k.Member != p.Visitor.ID || row.Gone {
			continue
		}
		if p.URL.Query().Get("revoke") == k.ID {
			view.Revoke = &row
		}
		view.List = append(view.List, row)
	}
	if view.Form == nil {
		view.Form = emptyForm("life", "90", "access", "role")
	}
	view.Lives, view.Access = lifeOptions, tokenAccess
	return a.renderStatus(w, p, status, "tokens", view)
}

// changeTokens serves the forms of the page. A token has the scopes of its member's present role at
// most, and the text of a new one is in this answer only.
func (a *App) changeTokens(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	switch f.Value("do") {
	case "create":
		return a.createToken(w, p, f)
	case "revoke":
		keys, err := a.srv.Keys.List(p.Context(), p.Workspace.ID)
		if err != nil {
			return err
		}
		own := slices.ContainsFunc(keys, func(k apikey.Key) bool { return k.ID == f.Value("key") && k.Member == p.Visitor.ID })
		if !own {
			return keyFault(apikey.ErrNotFound)
		}
		if err := a.srv.Keys.Revoke(p.Context(), p.Workspace.ID, f.Value("key")); err != nil {
			return keyFault(err)
		}
		p.flash(w, "Token revoked. Its streams were closed.")
		return p.redirect(w, "/w/"+p.Workspace.Slug+"/settings/developer/tokens")
	}
	return unknownForm()
}

func (a *App) createToken(w http.ResponseWriter, p *page, f *form) error {
	g := apikey.Grant{Workspace: p.Workspace.ID, Name: strings.TrimSpace(f.Value("name")), Member: p.Visitor.ID,
		By: &apikey.Principal{Workspace: p.Workspace.ID, Key: p.Visitor.ID, Name: p.Visitor.Name, Scopes: p.Scopes}}
	switch f.Value("access") {
	case "role":
		g.Scopes = p.Role.Scopes()
	case "chat":
		g.Scopes = apikey.Scopes{apikey.Chat, apikey.SessionsRead}
	case "read":
		g.Scopes = apikey.Scopes{apikey.SessionsRead}
	default:
		f.fail("access", "Choose what the token may do.")
	}
	life, ok := lifeOf(f.Value("life"))
	if g.Life = life; !ok {
		f.fail("life", "Choose when the token expires.")
	}
	if f.Failed() {
		return a.showTokens(w, p, http.StatusUnprocessableEntity, tokensView{Form: f})
	}
	k, text, err := a.srv.Keys.Create(p.Context(), g)
	if err != nil {
		if err := f.take(err, "name", "access", "life"); err != nil {
			return err
		}
		return a.showTokens(w, p, http.StatusUnprocessableEntity, tokensView{Form: f})
	}
	return a.showTokens(w, p, http.StatusOK, tokensView{Text: text, New: k})
}

// lifeOf returns the time that a key lives; nil is for ever. ok is false for a choice that does not
// exist.
func lifeOf(choice string) (life *time.Duration, ok bool) {
	if days := map[string]int{"30": 30, "90": 90, "365": 365}[choice]; days > 0 {
		return new(time.Duration(days) * 24 * time.Hour), true
	}
	return nil, choice == "never"
}
