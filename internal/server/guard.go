package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/workspace"
)

// Caller is the client of a request, identified by its key, with the workspace of the key.
type Caller struct {
	apikey.Principal
	Workspace workspace.Workspace
	Session   string // web session of a signed-in member, whose Key is the user's id; "": a key
	Command   string // user of a command inside this process, which has no key
}

// By names the caller in records that have one text for every kind of actor, such as "key:7F3kQ2xY".
func (c Caller) By() string {
	if c.Command != "" {
		return c.Command
	}
	return "key:" + c.Key
}

// Requirement lists the scope, rate class and workspace that a request needs.
type Requirement struct {
	Scope apikey.Scope
	Class ratelimit.Class
	// Names reports whether the request names this workspace; nil: it names none.
	Names func(workspace.Workspace) bool
	// Workspace is the reference of that workspace. With it signed-in members are accepted, too.
	Workspace string
	// Tokens accepts browser tokens. The operation checks their limit.
	Tokens bool
}

// Authorize checks the key, workspace, scope and quota of a request, in this order: 401, then 404
// for the workspace, then 403, then 429. It reads the caller's own workspace whatever the request
// names, so that another workspace gets the same response, and takes as long, as one that does not
// exist.
func (s *Server) Authorize(w http.ResponseWriter, r *http.Request, t Requirement) (Caller, error) {
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	if s.command != "" {
		return s.authorizeCommand(ctx, t)
	}
	if cookie := s.memberCookie(r); cookie != "" && t.Workspace != "" {
		return s.authorizeMember(ctx, w, r, cookie, t)
	}
	p, err := s.authenticate(ctx, r)
	if err != nil {
		return Caller{}, err
	}
	noteCaller(ctx, p.Key)
	own, isRecent, err := s.ownWorkspace(ctx, p, t.Class)
	if err != nil {
		return Caller{}, err
	}
	if t.Names != nil && !t.Names(own) {
		return Caller{}, fault.New(fault.WorkspaceNotFound, "This key cannot use the workspace in the address. "+
			"It belongs to the workspace %s: use that name.", own.Slug)
	}
	if !p.Scopes.Allows(t.Scope) {
		nameScopes(w, p, t.Scope)
		return Caller{}, MissingScope(t.Scope)
	}
	if p.Only != nil && !t.Tokens {
		return Caller{}, fault.New(fault.TokenRestricted,
			"A browser token cannot be used here: it sends and reads messages of its session or user. Use an API key.")
	}
	c := Caller{Principal: p, Workspace: own}
	if err := s.CountRequest(ctx, w, c, t.Class); err != nil {
		return Caller{}, err
	}
	if !isRecent { // the quota was used up a moment ago, but is not anymore
		c.Workspace, err = s.Workspaces.Recent(ctx, p.Workspace)
	}
	return c, err
}

// authorizeCommand is Authorize for a command inside this process. It needs no key: it has the
// database.
func (s *Server) authorizeCommand(ctx context.Context, t Requirement) (c Caller, err error) {
	c.Command, c.Scopes = s.command, apikey.All
	if t.Workspace != "" {
		c.Workspace, err = s.Workspaces.Find(ctx, t.Workspace)
	}
	return c, err
}

// nameRequiredScopes sets the headers that name the missing scopes if err is about scopes.
func nameRequiredScopes(w http.ResponseWriter, c Caller, err error) {
	if f := fault.From(err); f != nil && f.Code == fault.InsufficientScope {
		nameScopes(w, c.Principal, apikey.Scope(f.Detail.RequiredScope))
	}
}

func nameScopes(w http.ResponseWriter, p apikey.Principal, lacks apikey.Scope) {
	w.Header().Set("X-Accepted-Scopes", lacks.Accepted().String())
	w.Header().Set("X-Key-Scopes", p.Scopes.String())
}

// MissingScope returns the error of a key without a scope.
func MissingScope(s apikey.Scope) *fault.Error {
	return &fault.Error{Code: fault.InsufficientScope, Detail: fault.Detail{RequiredScope: string(s)},
		Message: fmt.Sprintf("This key lacks the scope %[1]s. Use a key that has it; "+
			"an administrator can create one with parley keys create --scope %[1]s.", s)}
}

// bearerToken returns the token of the request, "" without an Authorization header. A header that
// is not a bearer token becomes a token that cannot be valid.
func bearerToken(h http.Header) string {
	values := h.Values("Authorization")
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if token = strings.TrimLeft(token, " "); len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "-"
	}
	return token
}
