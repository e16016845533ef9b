// Package admin serves the administration API: the configuration of a workspace, and the server's.
//
// An operation is a row of a table: its path, its scope, the members of its body and a function
// from a parsed call to a value. Parsing, idempotency, the actor of a change and the envelope of
// responses exist once. It promises: a change names its actor to the log of changes; a secret is in
// no response but the one that creates it; an object of another workspace is reported like one that
// does not exist.
package admin

import (
	"cmp"
	"net/http"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/store/adminlog"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/workspace"
)

// Stores are the owners of what is administered, besides those of the server. All are required.
type Stores struct {
	Log *adminlog.Store
	// CheckModel rejects a model that no provider has; nil accepts every name.
	CheckModel func(workspace.Change) error
}

// api has the functions of the operations.
type api struct {
	*server.Server
	Stores
}

// New returns the handlers by their paths.
func New(srv *server.Server, stores Stores) server.Routes {
	s := &api{srv, stores}
	if s.CheckModel == nil {
		s.CheckModel = func(workspace.Change) error { return nil }
	}
	paths := make(map[string]map[string]server.Operation)
	for _, op := range s.operations() {
		if paths[op.path] == nil {
			paths[op.path] = make(map[string]server.Operation)
		}
		op.status = cmp.Or(op.status, http.StatusOK)
		paths[op.path][op.method] = server.Operation{Scope: op.scope, Class: ratelimit.Calls, Serve: func(w http.ResponseWriter, r *server.Request) error {
			return s.serve(w, r, op)
		}}
	}
	routes := make(server.Routes)
	for path, methods := range paths {
		routes[path] = s.HandleMethods(methods)
	}
	return routes
}

const (
	own = "/api/v1/workspaces/{id}"
	all = "/api/v1/admin"
)

// operations is the table of operations.
func (s *api) operations() []operation {
	logQuery := []string{"limit", "cursor", "object", "object_id", "actor", "since"}
	return []operation{
		{id: "getWorkspace", method: "GET", path: own, scope: apikey.ConfigRead, do: s.getWorkspace},
		{id: "updateWorkspace", method: "PATCH", path: own, scope: apikey.Admin, body: workspaceFields, do: s.updateWorkspace},
		{id: "listAdminLog", method: "GET", path: own + "/admin-log", scope: apikey.Admin, query: logQuery, do: s.listWorkspaceLog},
		{id: "listServerLog", method: "GET", path: all + "/log", scope: apikey.ServerAdmin, query: append(logQuery, "workspace_id"), do: s.listServerLog},

		{id: "listKeys", method: "GET", path: own + "/keys", scope: apikey.Admin, query: pageQuery, do: s.listKeys},
		{id: "createKey", method: "POST", path: own + "/keys", scope: apikey.Admin, body: []string{"name", "scopes", "expires_in"}, status: http.StatusCreated, do: s.createKey},
		{id: "getKey", method: "GET", path: own + "/keys/{keyId}", scope: apikey.Admin, do: s.getKey},
		{id: "updateKey", method: "PATCH", path: own + "/keys/{keyId}", scope: apikey.Admin, body: []string{"name", "expires_at"}, do: s.updateKey},
		{id: "revokeKey", method: "DELETE", path: own + "/keys/{keyId}", scope: apikey.Admin, do: s.revokeKey},
		{id: "rollKey", method: "POST", path: own + "/keys/{keyId}/roll", scope: apikey.Admin, body: []string{"overlap_seconds"}, status: http.StatusCreated, do: s.rollKey},
		{id: "getWebhookToken", method: "GET", path: own + "/webhook-token", scope: apikey.Admin, do: s.getWebhookToken},
		{id: "rollWebhookToken", method: "POST", path: own + "/webhook-token/roll", scope: apikey.Admin, status: http.StatusCreated, do: s.rollWebhookToken},
		{id: "revokeWebhookToken", method: "DELETE", path: own + "/webhook-token", scope: apikey.Admin, do: s.revokeWebhookToken},
	}
}
