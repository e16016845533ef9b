package app

import (
	"fmt"
	"net/http"

	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/a2a"
	"github.com/parley-server/parley/internal/server/admin"
	"github.com/parley-server/parley/internal/server/agui"
	"github.com/parley-server/parley/internal/server/aisdk"
	"github.com/parley-server/parley/internal/server/connect"
	"github.com/parley-server/parley/internal/server/mcp"
	"github.com/parley-server/parley/internal/server/openai"
	"github.com/parley-server/parley/internal/server/rest"
	"github.com/parley-server/parley/internal/store/adminlog"
	"github.com/parley-server/parley/internal/store/budget"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/toolenv/workdir"
	"github.com/parley-server/parley/internal/web"
)

// buildHandler creates the handler of all protocols.
func (s *service) buildHandler() (http.Handler, error) {
	srv, err := server.New(server.Config{
		EventLog: s.events, Sessions: s.sessions, Workspaces: s.workspaces, Keys: s.keys, Accounts: s.accounts,
		Turns: s.turns, Skills: s.skills, Agents: s.agents, Files: s.files, Callbacks: s.callbacks, Vault: s.secrets,
		Limits: s.limits, Failures: s.failures, TrustedProxies: s.proxies, CORSOrigins: s.Config.CORSOrigins, Local: s.DevDir != "",
		Log: s.Log, Metrics: s.metrics, Tracer: s.tracer, Version: ThisBuild().Version,
		BaseURL: s.Config.BaseURL, Keepalive: s.Config.SSEKeepAlive, WriteTimeout: s.Config.SSEWriteTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("make the server: %w", err)
	}
	own, err := rest.New(srv, s.checkReady)
	if err != nil {
		return nil, fmt.Errorf("make the HTTP interface: %w", err)
	}
	tools, err := mcp.New(srv, s.wiki)
	if err != nil {
		return nil, fmt.Errorf("make the MCP server: %w", err)
	}
	stores := admin.Stores{
		Log: adminlog.New(s.pool), Budgets: budget.New(s.pool), Permissions: permission.New(s.pool), Vault: s.secrets, Runner: s.runner,
		Wiki: s.wiki, Folders: s.folders, CheckModel: modelCheck{s.Config, s.modelset, true}.Check, Modelset: s.modelset,
		TestModel: s.models.testModel, Catalog: s.Config.catalog, DefaultModel: s.defaultModel(), System: s.describe,
		Activity: describeActivity(s.pool), Toolset: s.toolset, Probe: probeOf(s.runner, s.connector), Connector: s.connector,
		HTTPProbe: httpProbeOf(s.runner, s.httpSender()),
		Rehearse:  replan.RehearseOn(s.pool), Tools: s.toolSpecs, DeleteWorkspace: (&Stores{Workspaces: s.workspaces, Keys: s.keys,
			Sessions: s.sessions, Files: s.files}).DeleteWorkspace,
	}
	pages, err := web.New(srv, web.Stores{Stores: stores, Folders: workdir.New(s.pool, workdir.Options{}), Models: s.Config.OfferedModels(),
		Provider: s.Config.identityProvider()})
	if err != nil {
		return nil, fmt.Errorf("make the web application: %w", err)
	}
	return srv.NewRouter(pages, own, admin.New(srv, stores), connect.New(srv, connect.Config{Toolset: s.toolset, Connector: s.connector,
		Refresh: stores.RefreshConnected}), tools, a2a.New(srv, s.Config.PublicCard), openai.New(srv), aisdk.New(srv), agui.New(srv)), nil
}
