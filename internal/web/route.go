package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/actor"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/admin"
	"github.com/parley-server/parley/internal/store/apikey"
)

// handler serves one method of a page. It writes only on success.
type handler func(a *App, w http.ResponseWriter, p *page) error

// route is one page. A path with {ws} belongs to a workspace: the member needs scope there to read
// the page, and change to send one of its forms.
type route struct {
	path    string
	public  bool // needs no member
	admin   bool // needs an administrator of the server
	scope   apikey.Scope
	change  apikey.Scope
	wait    time.Duration // how long the page may take; 0: as long as other requests
	section string        // entry of the navigation
	get     handler
	post    handler
}

// table lists the pages.
func table() []route {
	return []route{
		{path: "/setup", public: true, get: (*App).setupPage, post: (*App).setup},
		{path: "/login", public: true, get: (*App).loginPage, post: (*App).login},
		{path: "/login/oidc", public: true, wait: providerWait, get: (*App).beginOIDC},
		{path: "/login/oidc/callback", public: true, wait: providerWait, get: (*App).finishOIDC},
		{path: "/logout", public: true, post: (*App).logout},
		{path: "/password", public: true, get: (*App).passwordPage, post: (*App).setPassword},
		{path: "/theme", public: true, post: (*App).setTheme},
		{path: "/workspaces", section: "workspaces", get: (*App).workspacesPage, post: (*App).createWorkspace},
		{path: "/account", section: "account", get: (*App).accountPage, post: (*App).changeAccount},

		{path: "/w/{ws}", get: (*App).workspaceStart},
		{path: "/w/{ws}/sessions", scope: apikey.SessionsRead, change: apikey.SessionsRead, section: "sessions", get: (*App).sessionsPage,
			post: (*App).changeViews},
		{path: "/w/{ws}/sessions/{session}", scope: apikey.SessionsRead, change: apikey.Chat, section: "sessions", get: (*App).sessionPage,
			post: (*App).forkSession},
		{path: "/w/{ws}/sessions/{session}/file", scope: apikey.SessionsRead, get: (*App).sessionFile},
		{path: "/w/{ws}/files", scope: apikey.ToolsRead, change: apikey.FilesWrite, section: "files", get: (*App).filesPage,
			post: (*App).changeFiles},
		{path: "/w/{ws}/files/{file}", scope: apikey.ToolsRead, get: (*App).openFile},
		{path: "/w/{ws}/sessions/{session}/export", scope: apikey.SessionsRead, get: (*App).exportSession},
		{path: "/w/{ws}/settings/developer", scope: apikey.ConfigRead, change: apikey.Admin, section: "developer", get: (*App).keysPage,
			post: (*App).changeKeys},
		{path: "/w/{ws}/settings/developer/tokens", scope: apikey.ConfigRead, change: apikey.ConfigRead, section: "developer",
			get: (*App).tokensPage, post: (*App).changeTokens},
		{path: "/w/{ws}/settings/developer/webhook", scope: apikey.ConfigRead, change: apikey.Admin, section: "developer",
			get: (*App).webhookPage, post: (*App).changeWebhook},
		{path: "/w/{ws}/settings/developer/connect", scope: apikey.ConfigRead, section: "developer", get: (*App).connectPage},
		{path: "/w/{ws}/settings/members", scope: apikey.ConfigRead, change: apikey.Admin, section: "members", get: (*App).membersPage,
			post: (*App).changeMembers},

		{path: "/w/{ws}/settings/credentials", scope: apikey.ConfigRead, change: apikey.Admin, section: "credentials",
			get: (*App).credentialsPage, post: (*App).changeCredentials},
		{path: "/w/{ws}/settings/models", scope: apikey.ConfigRead, change: apikey.Admin, section: "models", get: (*App).modelsPage,
			post: (*App).changeModels},
		{path: "/w/{ws}/settings/allowlist", scope: apikey.ConfigRead, change: apikey.ConfigWrite, section: "allowlist",
			get: (*App).allowlistPage, post: (*App).changeAllowlist},
		{path: "/w/{ws}/settings/egress", scope: apikey.ConfigRead, change: apikey.ConfigWrite, section: "egress", get: (*App).egressPage,
			post: (*App).changeEgress},
		{path: "/w/{ws}/settings/callbacks", scope: apikey.ConfigRead, change: apikey.Admin, section: "callbacks",
			get: (*App).callbacksPage, post: (*App).changeCallbacks},
		{path: "/w/{ws}/settings/callbacks/{callback}", scope: apikey.ConfigRead, change: apikey.Chat, section: "callbacks",
			get: (*App).callbackPage, post: (*App).redeliver},
		{path: "/w/{ws}/settings/workspace", scope: apikey.ConfigRead, change: apikey.Admin, section: "workspace",
			get: (*App).workspacePage, post: (*App).changeWorkspace},
		{path: "/w/{ws}/settings/log", scope: apikey.Admin, section: "log", get: (*App).workspaceLog},
		{path: "/w/{ws}/skills", scope: apikey.ConfigRead, change: apikey.ConfigWrite, section: "skills", get: (*App).skillsPage,
			post: (*App).createSkill},
		{path: "/w/{ws}/skills/{skill}", scope: apikey.ConfigRead, change: apikey.ConfigWrite, section: "skills", get: (*App).skillPage,
			post: (*App).changeSkill},
		{path: "/w/{ws}/knowledge", scope: apikey.ConfigRead, change: apikey.ConfigWrite, section: "knowledge", get: (*App).knowledgePage,
			post: (*App).uploadDocuments},
		{path: "/w/{ws}/knowledge/document", scope: apikey.ConfigRead, change: apikey.ConfigWrite, section: "knowledge",
			get: (*App).documentPage, post: (*App).changeDocument},
		{path: "/w/{ws}/tools", scope: apikey.ConfigRead, change: apikey.ConfigWrite, section: "tools", get: (*App).toolsPage,
			post: (*App).changeTool},
		{path: "/w/{ws}/tools/new", scope: apikey.ConfigWrite, change: apikey.ConfigWrite, wait: admin.ConnectTime, section: "tools",
			get: (*App).newToolServerPage, post: (*App).addToolServer},
		{path: "/w/{ws}/tools/servers/{server}", scope: apikey.ConfigRead, change: apikey.ConfigWrite, wait: admin.ConnectTime,
			section: "tools", get: (*App).toolServerPage, post: (*App).changeToolServer},
		{path: "/w/{ws}/tools/servers/{server}/{tool}", scope: apikey.ConfigRead, change: apikey.ConfigWrite, wait: admin.ConnectTime,
			section: "tools", get: (*App).ownToolPage, post: (*App).changeOwnTool},
		{path: "/w/{ws}/usage", scope: apikey.ConfigRead, section: "usage", get: (*App).usagePage},
		{path: "/w/{ws}/limits", scope: apikey.ConfigRead, change: apikey.Admin, section: "limits", get: (*App).limitsPage,
			post: (*App).changeLimits},
		{path: "/w/{ws}/agent", scope: apikey.ConfigRead, change: apikey.ConfigWrite, section: "agent", get: (*App).agentPage,
			post: (*App).changeAgent},
		{path: "/w/{ws}/agent/new", scope: apikey.ConfigWrite, change: apikey.ConfigWrite, section: "agent", get: (*App).newAgentPage,
			post: (*App).createAgent},
		{path: "/w/{ws}/agent/try", scope: apikey.ConfigWrite, section: "agent", get: (*App).tryPage},

		{path: "/w/{ws}/chat", scope: apikey.SessionsRead, section: "chat", get: (*App).chatPage},
		{path: "/w/{ws}/chat/options", scope: apikey.SessionsRead, get: (*App).chatOptions},
		{path: "/w/{ws}/chat/{session}/meter", scope: apikey.SessionsRead, get: (*App).chatMeter},
		{path: "/w/{ws}/chat/{session}", scope: apikey.SessionsRead, section: "chat", get: (*App).chatPage},
		{path: "/w/{ws}/approvals", scope: apikey.SessionsRead, section: "approvals", get: (*App).approvalsPage},
		{path: "/w/{ws}/approvals/{approval}", scope: apikey.SessionsRead, change: apikey.SessionsRead, section: "approvals",
			get: (*App).approvalPage, post: (*App).decideApproval},
		{path: "/w/{ws}/approvals/{approval}/card", scope: apikey.SessionsRead, get: (*App).approvalCard},
		{path: "/w/{ws}/approvals/{approval}/preview", change: apikey.SessionsRead, post: (*App).previewPattern},

		{path: "/admin/system", admin: true, section: "system", get: (*App).systemPage, post: (*App).changeSystem},
		{path: "/admin/log", admin: true, section: "serverlog", get: (*App).serverLog},
		{path: "/admin/users", admin: true, section: "users", get: (*App).usersPage, post: (*App).changeUsers},
	}
}

// maxForm is the size of a form without files.
const maxForm = 1 << 20

// routes returns the handlers of all pages and files.
func (a *App) routes() server.Routes {
	missing := a.json.Handler(a.front)
	first := a.srv.Handler(a.front)
	all := server.Routes{
		"/static/{hash}/{name...}": a.srv.Handler(a.static),
		"/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" || wantsPage(r) {
				first.ServeHTTP(w, r)
			} else {
				missing.ServeHTTP(w, r)
			}
		}),
	}
	for _, path := range []string{"/docs", "/docs/", "/llms.txt", "/llms-full.txt"} {
		all[path] = a.srv.Handler(a.docs)
	}
	for _, rt := range table() {
		all[rt.path] = a.srv.Handler(func(w http.ResponseWriter, r *http.Request) error { return a.serve(w, r, rt) })
	}
	return all
}

// serve checks a request for a page and calls the handler of its method.
func (a *App) serve(w http.ResponseWriter, r *http.Request, rt route) error {
	setHeaders(w.Header())
	handle := map[string]handler{http.MethodGet: rt.get, http.MethodHead: rt.get, http.MethodPost: rt.post}[r.Method]
	if handle == nil {
		return fault.New(fault.MethodNotAllowed, "This page does not take %s requests.", r.Method)
	}
	if r.Method == http.MethodPost {
		if err := a.acceptForm(w, r); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(rt.wait, a.srv.Timeout))
	defer cancel()
	p, err := a.open(r.WithContext(ctx), rt)
	if errors.Is(err, errSignIn) {
		return a.sendToLogin(w, r)
	}
	if err != nil {
		return err
	}
	if p.Visitor != nil && r.Method == http.MethodPost {
		p.Request = p.WithContext(actor.With(p.Context(), actor.Actor{Kind: actor.Member, ID: p.Visitor.ID, Name: p.Visitor.Name,
			Address: a.srv.ClientAddress(r).String(), RequestID: w.Header().Get("X-Request-Id")}))
	}
	return handle(a, w, p)
}

// acceptForm rejects forms of other sites and limits their size.
func (a *App) acceptForm(w http.ResponseWriter, r *http.Request) error {
	if err := a.guard.Check(r); err != nil {
		return fault.New(fault.OriginNotAllowed, "This form was sent from another site. Open the page here and send it again.")
	}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			return fault.New(fault.InvalidRequestBody, "The form cannot be read. Open the page again and repeat your change.")
		}
	}
	return nil
}

// errSignIn is returned for a page that needs a member.
var errSignIn = errors.New("sign in first")

// open identifies the visitor of a page and checks the role.
func (a *App) open(r *http.Request, rt route) (*page, error) {
	p := &page{Request: r, App: a, Section: rt.section}
	var err error
	if p.Visitor, err = a.visit(r); err != nil {
		return nil, err
	}
	switch {
	case rt.public:
		return p, nil
	case p.Visitor == nil:
		return nil, errSignIn
	case rt.admin && !p.Visitor.Admin:
		return nil, fault.New(fault.InsufficientScope, "Only administrators of the server can open this page.")
	}
	if slug := r.PathValue("ws"); slug != "" {
		if err := a.enter(r.Context(), p, slug); err != nil {
			return nil, err
		}
		need := rt.scope
		if r.Method == http.MethodPost {
			need = rt.change
		}
		if need != "" && !p.Scopes.Allows(need) {
			return nil, fault.New(fault.InsufficientScope, "Your role %s in this workspace does not allow this. It needs the scope %s.",
				p.Role, need)
		}
	}
	return p, nil
}

// visit returns the signed-in user of a request, or nil.
func (a *App) visit(r *http.Request) (*Visitor, error) {
	cookie, err := r.Cookie(a.srv.SessionCookie(r))
	if err != nil {
		return nil, nil
	}
	in, ok, err := a.accounts.Authenticate(r.Context(), cookie.Value, a.srv.ClientAddress(r).String())
	if err != nil || !ok {
		return nil, err
	}
	return &Visitor{ID: in.ID, Name: in.DisplayName(), Email: in.Email, Admin: in.Admin, User: in.User, Session: in.Session}, nil
}

// enter finds the workspace of a page. One without this member is reported as missing.
func (a *App) enter(ctx context.Context, p *page, slug string) error {
	missing := fault.New(fault.WorkspaceNotFound, "Workspace %.80q does not exist, or you are not a member of it.", slug)
	role, ok, err := a.accounts.RoleIn(ctx, p.Visitor.User, slug)
	if err != nil {
		return err
	}
	if !ok {
		return missing
	}
	ws, err := a.srv.Workspaces.Find(ctx, slug)
	if f := fault.From(err); f != nil && f.Code == fault.WorkspaceNotFound {
		return missing
	}
	if err != nil {
		return err
	}
	p.Workspace, p.Role, p.Scopes = ws, role, role.Scopes()
	return nil
}
