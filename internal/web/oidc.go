package web

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/actor"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/sso"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
)

// The limits of sign-ins at the identity provider.
const (
	flowLife      = 10 * time.Minute // of a sign-in that has begun
	providerWait  = 20 * time.Second // for all requests to the provider
	flowsOfClient = 60               // that an address may begin in a minute
)

// flowCookie binds a sign-in to the browser that began it.
const flowCookie = "parley_sign_in"

// SingleSignOn is the name of the identity provider, or "".
func (p *page) SingleSignOn() string {
	if p.App.Provider == nil {
		return ""
	}
	return p.App.Provider.Name
}

// groupsGrantAdmin reports whether the identity provider can sign in the first administrator.
func (a *App) groupsGrantAdmin() bool { return a.Provider != nil && a.Provider.Roles.GrantsAdmin() }

// beginOIDC leads the browser to the identity provider.
func (a *App) beginOIDC(w http.ResponseWriter, p *page) error {
	if a.Provider == nil {
		return noProvider()
	}
	if a.srv.Limits != nil {
		key := "address:" + network(a.srv.ClientAddress(p.Request))
		if _, err := a.srv.Limits.Take(p.Context(), key, "sign-ins", flowsOfClient); err != nil {
			return err
		}
	}
	stored, err := a.accounts.BeginFlow(p.Context(), nextPath(p.URL.Query().Get("next")))
	if err != nil {
		return err
	}
	address, err := a.Provider.AuthURL(p.Context(), a.flow(p, stored))
	if err != nil {
		return a.refuseOIDC(w, p, err)
	}
	http.SetCookie(w, a.flowCookie(p, stored.State, flowLife))
	http.Redirect(w, p.Request, address, http.StatusSeeOther)
	return nil
}

// finishOIDC signs in a browser that comes back from the identity provider.
func (a *App) finishOIDC(w http.ResponseWriter, p *page) error {
	if a.Provider == nil {
		return noProvider()
	}
	u, next, err := a.identify(p)
	http.SetCookie(w, a.flowCookie(p, "", -time.Second))
	if err != nil {
		return a.refuseOIDC(w, p, err)
	}
	return a.signIn(w, p, u, next)
}

// identify returns the user that the provider has signed in, and the page to open.
func (a *App) identify(p *page) (account.User, string, error) {
	q := p.URL.Query()
	cookie, err := p.Cookie(a.flowCookie(p, "", 0).Name)
	if err != nil || subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(q.Get("state"))) != 1 {
		return account.User{}, "", fault.New(fault.InsufficientScope,
			"This browser has not begun the sign-in, or began another one since. Begin again.")
	}
	stored, err := a.accounts.TakeFlow(p.Context(), cookie.Value)
	if err != nil {
		return account.User{}, "", err
	}
	if reason := q.Get("error"); reason != "" {
		return account.User{}, "", fault.New(fault.InsufficientScope, "%s refused the sign-in: %.80q.", a.Provider.Name, reason)
	}
	claims, err := a.Provider.Exchange(p.Context(), a.flow(p, stored), q.Get("code"))
	if err != nil {
		return account.User{}, "", err
	}
	roles, err := a.rolesOf(p.Context(), claims.Groups)
	if err != nil {
		return account.User{}, "", err
	}
	ctx := actor.With(p.Context(), actor.Actor{Kind: actor.Member, Name: claims.Email, Address: a.srv.ClientAddress(p.Request).String()})
	u, err := a.accounts.SignInWith(ctx, account.Identity{
		Subject: claims.Subject, Email: claims.Email, Verified: claims.Verified, Unverified: a.Provider.AcceptUnverified, Name: claims.Name,
		DecidesAdmin: a.Provider.Roles.GrantsAdmin(), Admin: a.Provider.Roles.Admin(claims.Groups), Roles: roles,
	})
	return u, stored.Next, err
}

// rolesOf returns the roles of groups in the workspaces that exist.
func (a *App) rolesOf(ctx context.Context, groups []string) (map[uuid.UUID]apikey.Role, error) {
	list, err := a.srv.Workspaces.List(ctx)
	roles := make(map[uuid.UUID]apikey.Role)
	for _, ws := range list {
		if role := a.Provider.Roles.RoleIn(ws.Slug, groups); role != "" {
			roles[ws.ID] = role
		}
	}
	return roles, err
}

// refuseOIDC shows why a sign-in failed. The log gets the cause.
func (a *App) refuseOIDC(w http.ResponseWriter, p *page, err error) error {
	problem := fault.From(err)
	if errors.Is(err, account.ErrNoRole) {
		problem = fault.New(fault.InsufficientScope, "You are signed in at %s, but your groups there give you no role in Parley. "+
			"Ask an administrator for one, then sign in again.", a.Provider.Name)
	}
	if problem == nil {
		return err
	}
	a.srv.Log.WarnContext(p.Context(), "sign-in at the identity provider failed", "err", err)
	f := emptyForm("next", nextPath(p.URL.Query().Get("next")))
	f.Note = problem.Message
	for _, v := range problem.Detail.Violations {
		f.Note = v.Message
	}
	return a.showLogin(w, p, problem.Code.Status(), f)
}

func (a *App) flow(p *page, f account.Flow) sso.Flow {
	return sso.Flow{Redirect: p.Base() + "/login/oidc/callback", State: f.State, Nonce: f.Nonce, Verifier: f.Verifier}
}

func (a *App) flowCookie(p *page, value string, life time.Duration) *http.Cookie {
	c := a.cookie(p, value, life)
	c.Name = flowCookie
	if c.Secure {
		c.Name = "__Host-" + flowCookie
	}
	return c
}

// noProvider is the error of a server without an identity provider.
func noProvider() error {
	return fault.New(fault.RouteNotFound, "This server has no identity provider. Sign in with a password.")
}
