package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/apikey"
)

// sessionCookie is the name of the cookie of a web session. Under https it has the prefix __Host-,
// so that no other host of the domain can set it.
const sessionCookie = "parley_session"

// SessionCookie returns the name of the cookie of a web session.
func (s *Server) SessionCookie(r *http.Request) string {
	if s.IsSecure(r) {
		return "__Host-" + sessionCookie
	}
	return sessionCookie
}

// IsSecure reports whether browsers reach the server over https.
func (s *Server) IsSecure(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(strings.ToLower(s.BaseURL), "https://")
}

// memberCookie returns the cookie of a signed-in member, "" if the request has a key or no cookie.
func (s *Server) memberCookie(r *http.Request) string {
	if s.Accounts == nil || len(r.Header.Values("Authorization")) > 0 {
		return ""
	}
	if c, err := r.Cookie(s.SessionCookie(r)); err == nil {
		return c.Value
	}
	return ""
}

// authorizeMember is Authorize for a signed-in member. Browsers send the cookie with requests of
// other sites' pages, too, so those are rejected first.
func (s *Server) authorizeMember(ctx context.Context, w http.ResponseWriter, r *http.Request, cookie string,
	t Requirement) (Caller, error) {
	if err := s.crossOrigin.Check(r); err != nil {
		return Caller{}, fault.New(fault.OriginNotAllowed, "Pages of other sites cannot use the session of a signed-in user.")
	}
	in, ok, err := s.Accounts.Authenticate(ctx, cookie, s.ClientAddress(r).String())
	if err != nil {
		return Caller{}, err
	}
	if !ok {
		return Caller{}, fault.New(fault.MissingAPIKey,
			"You are signed out. Sign in again, or send an API key in the header Authorization: Bearer <API_KEY>.")
	}
	noteCaller(ctx, in.ID)
	role, member, err := s.Accounts.RoleIn(ctx, in.User, t.Workspace)
	if err != nil {
		return Caller{}, err
	}
	missing := fault.New(fault.WorkspaceNotFound, "There is no workspace %.80q, or you are not a member of it.", t.Workspace)
	if !member {
		return Caller{}, missing
	}
	own, err := s.Workspaces.Find(ctx, t.Workspace)
	if f := fault.From(err); f != nil && f.Code == fault.WorkspaceNotFound {
		return Caller{}, missing
	}
	if err != nil {
		return Caller{}, err
	}
	c := Caller{Workspace: own, Session: in.Session,
		Principal: apikey.Principal{Workspace: own.ID, Key: in.ID, Name: in.DisplayName(), Scopes: role.Scopes()}}
	if !c.Scopes.Allows(t.Scope) {
		return Caller{}, &fault.Error{Code: fault.InsufficientScope, Detail: fault.Detail{RequiredScope: string(t.Scope)},
			Message: "Your role " + string(role) + " in this workspace lacks the scope " + string(t.Scope) + ". An owner can change your role."}
	}
	return c, s.CountRequest(ctx, w, c, t.Class)
}
