package httpapi

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/gorilla/mux"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/workspace"
)

// guard finds out who asks, what they may see and how often: 401, then 404 for the
// workspace, then 403, then 429. It reads the caller's own workspace whatever the path says, so that
// another's answers, and takes as long, as one that does not exist.
func (s *server) guard(w http.ResponseWriter, r *request) error {
	ctx, cancel := s.brief(r.Context())
	defer cancel()
	caller, err := s.cfg.Keys.Authenticate(ctx, bearer(r.Header), remote(r.Request))
	if err != nil {
		return err
	}
	own, whole, err := s.own(ctx, caller, r.op.Class)
	if err != nil {
		return err
	}
	if !names(mux.Vars(r.Request)["id"], own) {
		return fault.New(fault.WorkspaceNotFound, "No such workspace.")
	}
	if !caller.Scopes.Allows(r.op.Scope) {
		w.Header().Set("X-Accepted-Scopes", r.op.Scope.Accepted().String())
		w.Header().Set("X-Key-Scopes", caller.Scopes.String())
		return &fault.Error{Code: fault.InsufficientScope, Message: "This key lacks the scope " + string(r.op.Scope) + ".",
			Detail: fault.Detail{RequiredScope: string(r.op.Scope)}}
	}
	r.caller, r.workspace = caller, own
	if err := s.ration(ctx, w, r); err != nil {
		return err
	}
	if !whole { // there was nothing left a moment ago, and now there is
		r.workspace, err = s.cfg.Workspaces.Find(ctx, caller.Workspace.String())
	}
	return err
}

// names reports whether a path's segment is the workspace's name or id.
func names(segment string, w workspace.Workspace) bool {
	ref, err := url.PathUnescape(segment)
	if err != nil {
		return false
	}
	if len(ref) == 36 {
		if id, err := uuid.Parse(ref); err == nil {
			return id == w.ID
		}
	}
	return ref == w.Slug
}

// bearer is the token of the request, "" when there is no Authorization header.
// What is there but is no bearer token becomes one that cannot be valid.
func bearer(h http.Header) string {
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

// remote is where the request comes from, as far as it can be believed: behind a
// proxy everybody would look like this machine, so a proxied request comes from
// nowhere.
func remote(r *http.Request) netip.Addr {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if len(r.Header.Values(name)) > 0 {
			return netip.Addr{}
		}
	}
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return addr.Addr()
}

// challenge is the WWW-Authenticate header of an error, or "".
func challenge(f *fault.Error) string {
	const realm = `Bearer realm="parley"`
	switch f.Code {
	case fault.MissingAPIKey:
		return realm
	case fault.InvalidAPIKey:
		return realm + `, error="invalid_token"`
	case fault.InsufficientScope:
		return `Bearer error="insufficient_scope", scope="` + f.Detail.RequiredScope + `"`
	}
	return ""
}
