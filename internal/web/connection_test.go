package web

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-rod/rod"
	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/server/connect"
	"github.com/parley-server/parley/internal/server/rest"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/browser"
	"github.com/parley-server/parley/internal/testing/egresstest"
	"github.com/parley-server/parley/internal/testing/oauthtest"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/mcpauth"
	"github.com/parley-server/parley/internal/tool/mcptool"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/internal/toolenv/workdir"
	"github.com/parley-server/parley/internal/turn"
)

// oauthWorld is a server whose tools reach an MCP server with OAuth.
func oauthWorld(t *testing.T) (*world, *oauthtest.Server) {
	t.Helper()
	auth, authority := oauthtest.New("https://auth.example", "https://crm.example/mcp"), egresstest.NewAuthority(t)
	crm := mcp.NewServer(&mcp.Implementation{Name: "crm", Version: "1"}, nil)
	mcp.AddTool(crm, &mcp.Tool{Name: "whoami"}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "you send " + r.Extra.Header.Get("Authorization")}}}, nil, nil
	})
	protected := auth.Protect(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		return crm
	}, &mcp.StreamableHTTPOptions{DisableLocalhostProtection: true}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + listener.Addr().String()
	opt := apitest.Options{Egress: egress.Config{Roots: authority.Roots(), Allow: []string{
		"auth.example:443=" + authority.Site(t, auth, "auth.example"), "crm.example:443=" + authority.Site(t, protected, "crm.example")}}}
	var connector *mcpauth.Service
	opt.Turns = func(c *turn.Config) {
		guard, err := egress.New(opt.Egress)
		if err != nil {
			t.Fatal(err)
		}
		runner := toolenv.New(toolenv.Config{Pool: c.Pool, Guard: guard, Vault: c.Vault, Files: c.Files, Folders: workdir.New(c.Pool,
			workdir.Options{}), Dir: t.TempDir(), Log: c.Log})
		store := toolset.NewStore(c.Pool)
		connector = &mcpauth.Service{Store: store, Keys: c.Vault.Keyring(), Base: base, Log: c.Log, Open: func(ws uuid.UUID) mcpauth.Env {
			return runner.OpenProbe(ws)
		}}
		c.Runner, c.Toolset, c.Base = runner, store, base
		c.OwnTools = func(ctx context.Context, ws uuid.UUID, run *toolenv.Run) ([]tool.Tool, error) {
			servers, err := store.Usable(ctx, ws)
			holder := func(ctx context.Context) (string, error) { return store.TurnHolder(ctx, run.TurnID()) }
			return mcptool.Tools(run, mcptool.Record{Store: store, Workspace: ws, Log: c.Log}, connector.Of(ws, holder), servers), err
		}
	}
	s := apitest.New(t, opt)
	s.Listener = listener
	srv := s.Server(t, nil)
	api, err := rest.New(srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	stores := s.Administration()
	stores.Connector, stores.Probe.Grants = connector, connector.OfCaller
	app, err := newApp(srv, Stores{Stores: stores, Folders: workdir.New(s.Pool, workdir.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(t, srv.NewRouter(app.routes(), api, connect.New(srv, connect.Config{Toolset: stores.Toolset, Connector: connector,
		Refresh: stores.RefreshConnected})))
	return &world{s, app}, auth
}

// visitAuthorization lets a page open the authorization server, whose name only the service resolves.
func visitAuthorization(t *testing.T, p *browser.Page, auth *oauthtest.Server) {
	t.Helper()
	p.Allow("request to another origin: " + auth.URL + "/authorize")
	router := p.HijackRequests()
	router.MustAdd(auth.URL+"/*", func(h *rod.Hijack) {
		answer := httptest.NewRecorder()
		auth.ServeHTTP(answer, httptest.NewRequest(h.Request.Method(), h.Request.URL().String(), http.NoBody))
		res := answer.Result()
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Error(err)
		}
		h.Response.Payload().ResponseCode = res.StatusCode
		h.Response.SetHeader("Location", res.Header.Get("Location"))
		h.Response.SetBody(body)
	})
	go router.Run()
	t.Cleanup(func() { _ = router.Stop() }) // the page may be closed
}

// TestServersAreConnectedInTheBrowser adds a tool server with OAuth, connects it from its page, removes
// the connection, and connects it from the cards of turns that wait. The pages have no token.
func TestServersAreConnectedInTheBrowser(t *testing.T) {
	t.Parallel()
	w, auth := oauthWorld(t)
	p := w.signIn(t, account.NewUser{Email: "edda@halden.example", Name: "Edda Berg"}, apikey.Owner)
	visitAuthorization(t, p, auth)
	secretless := func() {
		t.Helper()
		html := p.MustHTML()
		for _, secret := range auth.Issued() {
			if strings.Contains(html, secret) {
				t.Errorf("%s has the token %s", p.Path(), secret)
			}
		}
	}
	p.Go(w.URL + "/w/demo/tools/new")
	choose(t, p, "#f-auth", "OAuth, one connection for the workspace")
	p.Fill("#f-scopes", "tools \u00e9")
	p.Fill("#f-name", "crm")
	p.Fill("#f-url", "https://crm.example/mcp")
	p.Press("button.primary", "Connect and add")
	p.See("#f-scopes-h", "A scope is one word")
	p.Fill("#f-scopes", "tools")
	p.Press("button.primary", "Connect and add")
	p.See(".note.warn", "The server needs a connection")
	p.See(".st", "Needs connection")
	p.Press("button", "Connect")
	p.See("dd", "https://crm.example/mcp")
	p.See("button", "Continue").MustClick()
	p.See("h1", "Connected")
	p.Go(w.URL + "/w/demo/tools/servers/crm")
	p.See("td a.t", "crm__whoami")
	p.See("#connections li", "The workspace")
	p.See("#connections .st", "Connected")
	secretless()
	p.Review("toolserver-oauth")
	p.Press("button", "Disconnect")
	p.See(".note", "Disconnected")
	p.Go(w.URL + "/w/demo/tools")
	p.See("td .st", "Needs connection")

	p.Go(w.URL + "/w/demo/chat")
	send(t, p, "@call crm__whoami\n@say Done.")
	p.See(".ask h2", "Connection needed")
	p.See("#state", "waiting for a connection")
	p.Review("chat-connect")
	p.Reload()
	p.Loaded()
	button := find(t, p, ".ask[data-armed] a.btn.primary")
	p.See(".ask dd", "crm")
	if target, rel := *button.MustAttribute("target"), *button.MustAttribute("rel"); target != "_blank" || !strings.Contains(rel, "noopener") {
		t.Errorf("the link opens in %q, related as %q", target, rel)
	}
	w.useLink(t, *button.MustAttribute("href"), auth)
	p.See(".asked", "Connected crm")
	p.See(".prose", "Done.")
	p.See("#state", "done")
	find(t, p, ".tool summary").MustClick()
	p.See(".tool pre", "you send Bearer [secret:crm.oauth]")
	secretless()
	p.Reload()
	p.Loaded()
	p.See(".asked", "Connected crm")
	p.See("#state", "done")
	id := p.Path()[strings.LastIndex(p.Path(), "/")+1:]
	p.Go(w.URL + "/w/demo/sessions/" + id + "?tab=events")
	p.See("td", "connect_required")
	secretless()
	p.Go(w.URL + "/w/demo/sessions/" + id + "?tab=timeline")
	if html := p.MustHTML(); !strings.Contains(html, "waited for an answer") {
		t.Error("the timeline does not show that the turn waited")
	}

	if _, err := w.Pool.Exec(t.Context(), `DELETE FROM tool_grants`); err != nil {
		t.Fatal(err)
	}
	p.Go(w.URL + "/w/demo/chat")
	send(t, p, "@call crm__whoami\n@say Without.")
	declined := find(t, p, ".ask[data-armed] a.btn.primary")
	auth.SetDeclines(true)
	w.useLink(t, *declined.MustAttribute("href"), auth)
	p.See(".asked", "Declined crm")
	p.See(".prose", "Without.")
	send(t, p, "@call crm__whoami\n@say Late.")
	find(t, p, ".ask a.btn.primary")
	if _, err := w.Pool.Exec(t.Context(),
		`UPDATE approvals SET expires_at = clock_timestamp() WHERE kind = 'connect' AND status = 'pending'`); err != nil {
		t.Fatal(err)
	}
	p.See(".asked", "Expired crm")
	viewer := w.signIn(t, account.NewUser{Email: "vera@halden.example"}, apikey.Viewer).Go(w.URL + "/w/demo/tools/servers/crm")
	if forms := viewer.MustElements("main form"); len(forms) > 0 {
		t.Errorf("a viewer sees %d forms", len(forms))
	}
}

// useLink uses the link of a card in another browser, without an account.
func (w *world) useLink(t *testing.T, address string, auth *oauthtest.Server) {
	t.Helper()
	p := browser.New(t)
	visitAuthorization(t, p, auth)
	p.Go(address)
	p.See("button", "Continue").MustClick()
	p.See("p", "You can close this window")
}

// TestCardsLinkOnlyToConnectPages rejects addresses of a question that are no page of a connection.
func TestCardsLinkOnlyToConnectPages(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"https://parley.example/connect/ABC": true, "http://127.0.0.1:8080/base/connect/ABC": true, "": false, "/connect/ABC": false,
		"javascript:alert('/connect/')":                   false,
		"javascript://parley.example/connect/%0aalert(1)": false, "data:text/html,/connect/": false, "https://parley.example/elsewhere": false,
	} {
		if got := isConnectLink(address); got != want {
			t.Errorf("%q is a link: %v", address, got)
		}
	}
}
