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
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/store/adminlog"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/budget"
	"github.com/parley-server/parley/internal/store/modelset"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/httptool"
	"github.com/parley-server/parley/internal/tool/mcpauth"
	"github.com/parley-server/parley/internal/tool/mcptool"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// Stores are the owners of what is administered, besides those of the server. All are required.
type Stores struct {
	Log         *adminlog.Store
	Permissions *permission.Store
	Budgets     *budget.Store
	Toolset     *toolset.Store
	Modelset    *modelset.Store
	// TestModel sends a short request to a model of a workspace.
	TestModel func(ctx context.Context, workspace uuid.UUID, name string) (ModelTest, error)
	Probe     mcptool.Probe // connects to tool servers
	HTTPProbe httptool.Probe
	Connector *mcpauth.Service // makes links for tool servers with OAuth; nil: there are none
	Vault     *vault.Store
	Runner    *toolenv.Runner
	Wiki      *wiki.Store
	Folders   *workdir.Store
	Tools     func() []tool.Spec // the built-in tools of this server
	// System describes the process and its database, without the pause.
	System func(context.Context) (System, error)
	// Activity describes the work of all processes on the database.
	Activity func(context.Context) (Activity, error)
	// Rehearse is replan.Rehearse on the database of the stores.
	Rehearse func(context.Context, func(context.Context, *replan.Rehearsal) error) error
	// DeleteWorkspace removes a workspace with everything in it.
	DeleteWorkspace Deletion
	// CheckModel rejects a model that no provider has; nil accepts every name.
	CheckModel func(ctx context.Context, workspace uuid.UUID, c workspace.Change) error
	Catalog    *model.Catalog // nil: the catalog of this release
	// DefaultModel is the model of agents that name none; "": not known to this process.
	DefaultModel string
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
		s.CheckModel = func(context.Context, uuid.UUID, workspace.Change) error { return nil }
	}
	paths := make(map[string]map[string]server.Operation)
	for _, op := range s.operations() {
		if paths[op.path] == nil {
			paths[op.path] = make(map[string]server.Operation)
		}
		op.status = cmp.Or(op.status, http.StatusOK)
		paths[op.path][op.method] = server.Operation{Scope: op.scope, Class: ratelimit.Calls, Serve: func(w http.ResponseWriter,
			r *server.Request) error {
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
		{id: "pauseWorkspace", method: "POST", path: own + "/pause", scope: apikey.Admin, do: s.pauseWorkspace},
		{id: "resumeWorkspace", method: "POST", path: own + "/resume", scope: apikey.Admin, do: s.resumeWorkspace},
		{id: "pauseServer", method: "POST", path: all + "/pause", scope: apikey.ServerAdmin, do: s.pauseServer},
		{id: "resumeServer", method: "POST", path: all + "/resume", scope: apikey.ServerAdmin, do: s.resumeServer},
		{id: "listAdminLog", method: "GET", path: own + "/admin-log", scope: apikey.Admin, query: logQuery, do: s.listWorkspaceLog},
		{id: "listServerLog", method: "GET", path: all + "/log", scope: apikey.ServerAdmin, query: append(logQuery, "workspace_id"),
			do: s.listServerLog},

		{id: "checkConfiguration", method: "POST", path: own + "/config/check", scope: apikey.ConfigWrite, body: []string{"changes"},
			large: true, calls: true, do: s.checkConfiguration},
		{id: "getLimits", method: "GET", path: own + "/limits", scope: apikey.ConfigRead, do: s.getLimits},
		{id: "listModelPrices", method: "GET", path: own + "/models", scope: apikey.ConfigRead, query: pageQuery, do: s.listModels},
		{id: "testModel", method: "POST", path: own + "/models/test", scope: apikey.ConfigWrite, body: []string{"model"}, calls: true,
			do: s.testModel},
		{id: "listModelProviders", method: "GET", path: own + "/model-providers", scope: apikey.ConfigRead, query: pageQuery,
			do: s.listModelProviders},
		{id: "putModelProvider", method: "PUT", path: own + "/model-providers/{provider}", scope: apikey.Admin,
			body: []string{"kind", "base_url", "credential", "timeout_seconds"}, do: s.putModelProvider},
		{id: "deleteModelProvider", method: "DELETE", path: own + "/model-providers/{provider}", scope: apikey.Admin, do: s.deleteModelProvider},
		{id: "listBudgets", method: "GET", path: own + "/budgets", scope: apikey.ConfigRead, query: pageQuery, do: s.listBudgets},
		{id: "putBudget", method: "PUT", path: own + "/budgets/{kind}", scope: apikey.Admin, body: []string{"subject", "max_cost_usd",
			"max_tokens"}, do: s.putBudget},
		{id: "deleteBudget", method: "DELETE", path: own + "/budgets/{kind}", scope: apikey.Admin, query: []string{"subject"},
			do: s.deleteBudget},
		{id: "eraseSession", method: "POST", path: own + "/erasures", scope: apikey.Admin, body: []string{"session_id", "caller_id"},
			do: s.erase},
		{id: "listErasures", method: "GET", path: own + "/erasures", scope: apikey.Admin, query: pageQuery, do: s.listErasures},
		{id: "listWorkspaces", method: "GET", path: all + "/workspaces", scope: apikey.ServerAdmin, query: pageQuery, do: s.listWorkspaces},
		{id: "createWorkspace", method: "POST", path: all + "/workspaces", scope: apikey.ServerAdmin,
			body: append([]string{"slug", "with_key"}, workspaceFields...), status: http.StatusCreated, do: s.createWorkspace},
		{id: "deleteWorkspace", method: "DELETE", path: all + "/workspaces/{workspaceId}", scope: apikey.ServerAdmin, do: s.deleteWorkspace},
		{id: "getSystem", method: "GET", path: all + "/system", scope: apikey.ServerAdmin, do: s.getSystem},
		{id: "getActivity", method: "GET", path: all + "/activity", scope: apikey.ServerAdmin, do: s.getActivity},
		{id: "getRetention", method: "GET", path: all + "/retention", scope: apikey.ServerAdmin, do: s.getRetention},

		{id: "listCredentials", method: "GET", path: own + "/credentials", scope: apikey.ConfigRead, query: pageQuery, do: s.listCredentials},
		{id: "putCredential", method: "PUT", path: own + "/credentials/{name}", scope: apikey.Admin,
			body: []string{"value", "allowed_hosts", "in_query", "in_body", "allow_http"}, do: s.putCredential},
		{id: "deleteCredential", method: "DELETE", path: own + "/credentials/{name}", scope: apikey.Admin, do: s.deleteCredential},
		{id: "getCallbackSecret", method: "GET", path: own + "/callback-secret", scope: apikey.Admin, do: s.getCallbackSecret},
		{id: "showCallbackSecret", method: "POST", path: own + "/callback-secret", scope: apikey.Admin, status: http.StatusCreated,
			do: s.showCallbackSecret},
		{id: "rollCallbackSecret", method: "POST", path: own + "/callback-secret/roll", scope: apikey.Admin,
			body: []string{"overlap_seconds"}, status: http.StatusCreated, do: s.rollCallbackSecret},

		{id: "listSessionFiles", method: "GET", path: own + "/sessions/{sessionId}/folder", scope: apikey.SessionsRead, query: pageQuery,
			do: s.listSessionFiles},
		{id: "getSessionFile", method: "GET", path: own + "/sessions/{sessionId}/folder/content", scope: apikey.SessionsRead,
			query: []string{"path"}, do: s.getSessionFile},

		{id: "listTools", method: "GET", path: own + "/tools", scope: apikey.ToolsRead, query: pageQuery, do: s.listTools},
		{id: "putToolRule", method: "PUT", path: own + "/tools/{tool}/rule", scope: apikey.ConfigWrite, body: []string{"rule"},
			do: s.putToolRule},
		{id: "deleteToolRule", method: "DELETE", path: own + "/tools/{tool}/rule", scope: apikey.ConfigWrite, do: s.deleteToolRule},
		{id: "listToolServers", method: "GET", path: own + "/tool-servers", scope: apikey.ConfigRead, query: pageQuery, do: s.listToolServers},
		{id: "addToolServer", method: "POST", path: own + "/tool-servers", scope: apikey.ConfigWrite, body: []string{"name", "kind", "url",
			"headers", "allow", "timeout_seconds", "tools", "openapi", "operations", "auth", "auth_per", "client_id", "client_secret_name",
			"scopes"}, large: true, status: http.StatusCreated, calls: true, ask: s.askToolServer, do: s.addToolServer},
		{id: "getToolServer", method: "GET", path: own + "/tool-servers/{toolServer}", scope: apikey.ConfigRead, do: s.getToolServer},
		{id: "updateToolServer", method: "PATCH", path: own + "/tool-servers/{toolServer}", scope: apikey.ConfigWrite,
			body: []string{"enabled"}, do: s.updateToolServer},
		{id: "deleteToolServer", method: "DELETE", path: own + "/tool-servers/{toolServer}", scope: apikey.ConfigWrite, do: s.deleteToolServer},
		{id: "connectToolServer", method: "POST", path: own + "/tool-servers/{toolServer}/connect", scope: apikey.ConfigWrite,
			query: []string{"scope"}, status: http.StatusCreated, do: s.connectToolServer},
		{id: "listConnections", method: "GET", path: own + "/tool-servers/{toolServer}/connections", scope: apikey.ConfigRead,
			query: pageQuery, do: s.listConnections},
		{id: "deleteConnection", method: "DELETE", path: own + "/tool-servers/{toolServer}/connections/{connectionId}",
			scope: apikey.ConfigWrite, do: s.deleteConnection},
		{id: "refreshToolServer", method: "POST", path: own + "/tool-servers/{toolServer}/refresh", scope: apikey.ConfigWrite, calls: true,
			do: s.refreshToolServer},
		{id: "putHTTPTools", method: "PUT", path: own + "/tool-servers/{toolServer}/tools", scope: apikey.ConfigWrite,
			body: []string{"tools", "openapi", "operations"}, large: true, do: s.putHTTPTools},
		{id: "updateOwnTool", method: "PATCH", path: own + "/tool-servers/{toolServer}/tools/{tool}", scope: apikey.ConfigWrite,
			body: []string{"label", "enabled"}, do: s.updateOwnTool},
		{id: "acceptOwnTool", method: "POST", path: own + "/tool-servers/{toolServer}/tools/{tool}/accept", scope: apikey.ConfigWrite,
			body: []string{"hash"}, do: s.acceptOwnTool},
		{id: "testOwnTool", method: "POST", path: own + "/tool-servers/{toolServer}/tools/{tool}/test", scope: apikey.ConfigWrite,
			body: []string{"input"}, calls: true, do: s.testOwnTool},
		{id: "listAllowlist", method: "GET", path: own + "/allowlist", scope: apikey.ConfigRead, query: pageQuery, do: s.listAllowlist},
		{id: "addPattern", method: "POST", path: own + "/allowlist", scope: apikey.ConfigWrite, body: []string{"pattern"},
			status: http.StatusCreated, do: s.addPattern},
		{id: "previewPattern", method: "POST", path: own + "/allowlist/preview", scope: apikey.ConfigRead, body: []string{"pattern"},
			do: s.previewPattern},
		{id: "revokePattern", method: "DELETE", path: own + "/allowlist/{allowlistId}", scope: apikey.ConfigWrite, do: s.revokePattern},
		{id: "getEgress", method: "GET", path: own + "/egress", scope: apikey.ConfigRead, do: s.getEgress},
		{id: "putEgress", method: "PUT", path: own + "/egress", scope: apikey.ConfigWrite, body: []string{"hosts", "public"}, do: s.putEgress},
		{id: "listEgressRequests", method: "GET", path: own + "/egress/requests", scope: apikey.ConfigRead,
			query: []string{"limit", "session_id"}, do: s.listRequests},

		{id: "listAgents", method: "GET", path: own + "/agents", scope: apikey.ConfigRead, query: pageQuery, do: s.listAgents},
		{id: "createAgent", method: "POST", path: own + "/agents", scope: apikey.ConfigWrite, body: append([]string{"name", "note"},
			definitionFields...), status: http.StatusCreated, do: s.createAgent},
		{id: "getAgent", method: "GET", path: own + "/agents/{agent}", scope: apikey.ConfigRead, do: s.getAgent},
		{id: "putAgent", method: "PUT", path: own + "/agents/{agent}", scope: apikey.ConfigWrite, body: append([]string{"note"},
			definitionFields...), do: s.putAgent},
		{id: "deleteAgent", method: "DELETE", path: own + "/agents/{agent}", scope: apikey.ConfigWrite, do: s.deleteAgent},
		{id: "listAgentVersions", method: "GET", path: own + "/agents/{agent}/versions", scope: apikey.ConfigRead, query: pageQuery,
			do: s.listAgentVersions},
		{id: "getAgentVersion", method: "GET", path: own + "/agents/{agent}/versions/{version}", scope: apikey.ConfigRead, do: s.getAgentVersion},
		{id: "getAgentDraft", method: "GET", path: own + "/agents/{agent}/draft", scope: apikey.ConfigRead, do: s.getAgentDraft},
		{id: "putAgentDraft", method: "PUT", path: own + "/agents/{agent}/draft", scope: apikey.ConfigWrite, body: definitionFields,
			do: s.putAgentDraft},
		{id: "deleteAgentDraft", method: "DELETE", path: own + "/agents/{agent}/draft", scope: apikey.ConfigWrite, do: s.deleteAgentDraft},
		{id: "diffAgent", method: "GET", path: own + "/agents/{agent}/diff", scope: apikey.ConfigRead, query: []string{"from", "to"},
			do: s.diffAgent},
		{id: "publishAgent", method: "POST", path: own + "/agents/{agent}/publish", scope: apikey.ConfigWrite, body: []string{"note"},
			do: s.publishAgent},
		{id: "rollbackAgent", method: "POST", path: own + "/agents/{agent}/rollback", scope: apikey.ConfigWrite,
			body: []string{"version", "note"}, do: s.rollbackAgent},

		{id: "listSkills", method: "GET", path: own + "/skills", scope: apikey.ConfigRead, query: pageQuery, do: s.listSkills},
		{id: "getSkill", method: "GET", path: own + "/skills/{skill}", scope: apikey.ConfigRead, query: []string{"version"}, do: s.getSkill},
		{id: "putSkill", method: "PUT", path: own + "/skills/{skill}", scope: apikey.ConfigWrite, body: []string{"document", "draft"},
			do: s.putSkill},
		{id: "listSkillChanges", method: "GET", path: own + "/skills/{skill}/changes", scope: apikey.ConfigRead, query: pageQuery,
			do: s.listSkillChanges},
		{id: "publishSkill", method: "POST", path: own + "/skills/{skill}/publish", scope: apikey.ConfigWrite, body: []string{"version"},
			do: s.publishSkill},
		{id: "archiveSkill", method: "POST", path: own + "/skills/{skill}/archive", scope: apikey.ConfigWrite, do: s.archiveSkill},
		{id: "listDocuments", method: "GET", path: own + "/documents", scope: apikey.ConfigRead, query: append([]string{"prefix"},
			pageQuery...), do: s.listDocuments},
		{id: "getDocument", method: "GET", path: own + "/documents/content", scope: apikey.ConfigRead, query: []string{"path"},
			do: s.getDocument},
		{id: "putDocument", method: "PUT", path: own + "/documents/content", scope: apikey.ConfigWrite, query: []string{"path"},
			body: []string{"content"}, large: true, do: s.putDocument},
		{id: "deleteDocument", method: "DELETE", path: own + "/documents/content", scope: apikey.ConfigWrite, query: []string{"path"},
			do: s.deleteDocument},

		{id: "listKeys", method: "GET", path: own + "/keys", scope: apikey.Admin, query: pageQuery, do: s.listKeys},
		{id: "createKey", method: "POST", path: own + "/keys", scope: apikey.Admin, body: []string{"name", "scopes", "expires_in"},
			status: http.StatusCreated, do: s.createKey},
		{id: "getKey", method: "GET", path: own + "/keys/{keyId}", scope: apikey.Admin, do: s.getKey},
		{id: "updateKey", method: "PATCH", path: own + "/keys/{keyId}", scope: apikey.Admin, body: []string{"name", "expires_at"},
			do: s.updateKey},
		{id: "revokeKey", method: "DELETE", path: own + "/keys/{keyId}", scope: apikey.Admin, do: s.revokeKey},
		{id: "rollKey", method: "POST", path: own + "/keys/{keyId}/roll", scope: apikey.Admin, body: []string{"overlap_seconds"},
			status: http.StatusCreated, do: s.rollKey},
		{id: "getWebhookToken", method: "GET", path: own + "/webhook-token", scope: apikey.Admin, do: s.getWebhookToken},
		{id: "rollWebhookToken", method: "POST", path: own + "/webhook-token/roll", scope: apikey.Admin, status: http.StatusCreated,
			do: s.rollWebhookToken},
		{id: "revokeWebhookToken", method: "DELETE", path: own + "/webhook-token", scope: apikey.Admin, do: s.revokeWebhookToken},
	}
}
