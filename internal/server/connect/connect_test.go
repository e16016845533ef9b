package connect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/server/admin"
	"github.com/parley-server/parley/internal/server/connect"
	"github.com/parley-server/parley/internal/server/rest"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/dbtest/canary"
	"github.com/parley-server/parley/internal/testing/egresstest"
	"github.com/parley-server/parley/internal/testing/oauthtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/mcpauth"
	"github.com/parley-server/parley/internal/tool/mcptool"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/internal/toolenv/workdir"
	"github.com/parley-server/parley/internal/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// public is the address under which browsers know the service.
const public = "https://parley.example"

// world is an MCP server with OAuth, and where the hosts of the test are.
type world struct {
	auth      *oauthtest.Server
	authority *egresstest.Authority
	at        map[string]string
	missed    chan func() // run when a call has found no grant
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{auth: oauthtest.New("https://auth.example", "https://crm.example/mcp"), authority: egresstest.NewAuthority(t),
		at:     make(map[string]string),
		missed: make(chan func(), 1)}
	crm := mcp.NewServer(&mcp.Implementation{Name: "crm", Version: "1"}, nil)
	mcp.AddTool(crm, &mcp.Tool{Name: "whoami"}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "you send " + r.Extra.Header.Get("Authorization")}}}, nil, nil
	})
	t.Cleanup(func() {
		for session := range crm.Sessions() { // of tokens that had ended
			_ = session.Close()
		}
	})
	mcp.AddTool(crm, &mcp.Tool{Name: "expire"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		w.auth.Revoke(false)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "expired"}}}, nil, nil
	})
	w.at["auth.example"] = w.authority.Site(t, w.auth, "auth.example")
	w.at["crm.example"] = w.authority.Site(t, w.auth.Protect(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return crm },
		&mcp.StreamableHTTPOptions{DisableLocalhostProtection: true})), "crm.example")
	return w
}

// replica is a process with its pages.
type replica struct {
	*apitest.Service
	w *world
}

// start starts a process, or another one beside peer.
func (w *world) start(t *testing.T, peer *replica) *replica {
	t.Helper()
	opt := apitest.Options{Egress: egress.Config{Roots: w.authority.Roots()}}
	for name, at := range w.at {
		opt.Egress.Allow = append(opt.Egress.Allow, name+":443="+at)
	}
	if peer != nil {
		opt.Pool, opt.Peer = peer.Pool, peer.Service
	}
	r := &replica{w: w}
	var connector *mcpauth.Service
	opt.Turns = func(c *turn.Config) {
		guard, err := egress.New(opt.Egress)
		if err != nil {
			t.Fatal(err)
		}
		runner := toolenv.New(toolenv.Config{Pool: c.Pool, Guard: guard, Vault: c.Vault, Files: c.Files, Folders: workdir.New(c.Pool,
			workdir.Options{}), Dir: t.TempDir(), Log: c.Log})
		store := toolset.NewStore(c.Pool)
		connector = &mcpauth.Service{Store: store, Keys: c.Vault.Keyring(), Base: public, Log: c.Log, Open: func(ws uuid.UUID) mcpauth.Env {
			return runner.OpenProbe(ws)
		}}
		c.Runner, c.Toolset, c.Base, c.Workers = runner, store, public, 1
		c.OwnTools = func(ctx context.Context, ws uuid.UUID, run *toolenv.Run) ([]tool.Tool, error) {
			servers, err := store.Usable(ctx, ws)
			holder := func(ctx context.Context) (string, error) { return store.TurnHolder(ctx, run.TurnID()) }
			return mcptool.Tools(run, mcptool.Record{Store: store, Workspace: ws, Log: c.Log}, slowGrants{connector.Of(ws, holder),
				w.missed}, servers), err
		}
	}
	r.Service = apitest.New(t, opt)
	srv := r.Server(t, nil)
	own, err := rest.New(srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	stores := r.Administration()
	stores.Connector, stores.Probe.Grants = connector, connector.OfCaller
	r.Serve(t, srv.NewRouter(own, admin.New(srv, stores), connect.New(srv, connect.Config{Toolset: stores.Toolset, Connector: connector,
		Refresh: stores.RefreshConnected})))
	return r
}

// api sends a request with the key, and returns the response's text.
func (r *replica) api(t *testing.T, call, body string) string {
	t.Helper()
	method, path, _ := strings.Cut(call, " ")
	if !strings.HasPrefix(path, "/") {
		path = "/api/v1/workspaces/demo/" + path
	}
	req, err := http.NewRequestWithContext(t.Context(), method, r.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.Key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := (&http.Client{Transport: r.Transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// link finds a link in a response.
func link(t *testing.T, text string) string {
	t.Helper()
	m := regexp.MustCompile(`"connect_url":"(` + public + `/connect/[A-Z0-9]+)"`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no link in %s", text)
	}
	return m[1]
}

// browser opens pages, with cookies; the service is where the replica is.
type browser struct {
	http.Client
	r     *replica
	tls   *http.Transport
	saw   []string
	pages string
}

func (r *replica) browser(t *testing.T) *browser {
	t.Helper()
	b := &browser{r: r, tls: &http.Transport{TLSClientConfig: r.w.authority.Client(), DialContext: func(ctx context.Context, network,
		address string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(address)
		return new(net.Dialer).DialContext(ctx, network, r.w.at[host])
	}}}
	t.Cleanup(b.tls.CloseIdleConnections)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Client = http.Client{Jar: jar, Transport: b}
	return b
}

// RoundTrip implements http.RoundTripper.
func (b *browser) RoundTrip(q *http.Request) (*http.Response, error) {
	b.saw = append(b.saw, q.URL.String())
	if q.URL.Host != "parley.example" {
		return b.tls.RoundTrip(q)
	}
	at, err := url.Parse(b.r.URL)
	if err != nil {
		return nil, err
	}
	out := q.Clone(q.Context())
	out.Host, out.URL.Scheme, out.URL.Host = q.URL.Host, at.Scheme, at.Host
	return b.r.Transport.RoundTrip(out)
}

// open opens a page, and returns its status and its text.
func (b *browser) open(t *testing.T, method, address, site string) (int, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Sec-Fetch-Site", site)
	res, err := b.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if policy := res.Header.Get("Content-Security-Policy"); res.Request.URL.Host == "parley.example" &&
		(!strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") || !strings.Contains(policy, "frame-ancestors 'none'") ||
			res.Header.Get("Referrer-Policy") != "no-referrer") {
		t.Errorf("%s %s has the policy %q", method, address, policy)
	}
	b.pages += string(text)
	return res.StatusCode, string(text)
}

var next = regexp.MustCompile(`<a href="([^"]+)"`)

// follow uses a link to its last page.
func (b *browser) follow(t *testing.T, link string) string {
	t.Helper()
	if status, text := b.open(t, http.MethodGet, link, "none"); status != http.StatusOK || !strings.Contains(text, "<dd>Demo</dd>") ||
		!strings.Contains(text, "<dd>crm</dd>") || !strings.Contains(text, "https://crm.example/mcp") {
		t.Errorf("the page is %d %s", status, text)
	}
	status, text := b.open(t, http.MethodPost, link, "same-origin")
	m := next.FindStringSubmatch(text)
	if status != http.StatusOK || m == nil || !strings.Contains(text, `content="0; url=https://auth.example/authorize?`) {
		t.Fatalf("the next page is %d %s", status, text)
	}
	_, text = b.open(t, http.MethodGet, html.UnescapeString(m[1]), "cross-site")
	return text
}

// ended reads the events of a session until its newest turn has ended.
func (r *replica) ended(t *testing.T, id string) string {
	t.Helper()
	text := ""
	wait.For(t, "the end of the turn", func() bool {
		return strings.Contains(r.api(t, "GET sessions/"+id, ""), `"status":"completed"`)
	})
	rows, err := r.Pool.Query(t.Context(), `SELECT kind || ' ' || data::text FROM events WHERE session_id = $1 ORDER BY ord`, id)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var row string
		if err := rows.Scan(&row); err != nil {
			t.Fatal(err)
		}
		text += row + "\n"
	}
	return text
}

// ask sends a message and returns the answer and the id of its session.
func (r *replica) ask(t *testing.T, body string) (text, session string) {
	t.Helper()
	text = r.api(t, "POST messages", body)
	var answer struct {
		SessionID string `json:"session_id"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return text, answer.SessionID
}

const call = `{"command":"@call crm__whoami\n@say Done.","stream":false%s}`

// TestTurnsWaitForAConnection adds a server, connects it as an administrator, and lets turns wait for
// a connection, which another replica takes over. No token is in an event, a log or a response.
func TestTurnsWaitForAConnection(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs replicas")
	w := newWorld(t)
	a := w.start(t, nil)
	const entry = `{"name":"crm","url":"https://crm.example/mcp","auth":"oauth","scopes":["tools"]}`
	if got := a.api(t, "POST tool-servers", entry); !strings.Contains(got, `"auth":"oauth","auth_per":"workspace"`) ||
		!strings.Contains(got, `"tools":[]`) || !strings.Contains(got, `"refreshed_at":null`) {
		t.Fatalf("added: %s", got)
	}
	first := link(t, a.api(t, "POST tool-servers/crm/connect", ""))
	user := a.browser(t)
	if status, text := user.open(t, http.MethodPost, first, "cross-site"); status != http.StatusForbidden {
		t.Errorf("a foreign page: %d %s", status, text)
	}
	if text := user.follow(t, first); !strings.Contains(text, "You can close this window") {
		t.Fatalf("the last page is %s", text)
	}
	if last := user.saw[len(user.saw)-1]; last != public+"/connect/done" {
		t.Errorf("the last address is %s", last)
	}
	if status, text := user.open(t, http.MethodGet, first, "none"); status != http.StatusGone ||
		!strings.Contains(text, "This link was used at") ||
		!strings.Contains(text, "parley tools connect crm") {
		t.Errorf("the link again: %d %s", status, text)
	}
	if got := a.api(t, "GET tool-servers/crm", ""); !strings.Contains(got, `"name":"crm__whoami"`) ||
		!strings.Contains(got, `"state":"usable"`) {
		t.Fatalf("connected: %s", got)
	}
	text, session := a.ask(t, fmt.Sprintf(call, ""))
	if got := a.ended(t, session); !strings.Contains(text, `"output":"Done."`) || !strings.Contains(got, "you send Bearer") {
		t.Errorf("with the grant: %s\n%s", text, got)
	}

	var connections struct {
		Data []struct{ Connection_ID, Per string }
	}
	if err := json.Unmarshal([]byte(a.api(t, "GET tool-servers/crm/connections", "")), &connections); err != nil ||
		len(connections.Data) != 1 || connections.Data[0].Per != "workspace" {
		t.Fatalf("connections %+v, %v", connections, err)
	}
	disconnect := func() {
		t.Helper()
		if _, err := a.Pool.Exec(t.Context(), `DELETE FROM tool_grants`); err != nil {
			t.Fatal(err)
		}
	}
	if got := a.api(t, "DELETE tool-servers/crm/connections/"+connections.Data[0].Connection_ID, ""); !strings.Contains(got,
		`"deleted":true`) {
		t.Errorf("disconnected: %s", got)
	}
	chat := *a.Service
	chat.Key = a.Issue(t, a.Workspace, apikey.Chat)
	text, session = (&replica{&chat, w}).ask(t, fmt.Sprintf(call, ""))
	if got := a.ended(t, session); !strings.Contains(text, `"output":"Done."`) || strings.Contains(got, "connect_required") ||
		!strings.Contains(got, "An administrator can connect it: parley tools connect crm") {
		t.Errorf("a key without config:write: %s\n%s", text, got)
	}
	text, session = a.ask(t, fmt.Sprintf(call, ""))
	if !strings.Contains(text, `"error":"connect_required"`) || !strings.Contains(text, `"server":"crm"`) {
		t.Fatalf("without the grant: %s", text)
	}
	waits := link(t, text)
	_, other := a.ask(t, fmt.Sprintf(call, ""))

	// The replica that ran the turn is busy, so another one continues it.
	go func() { // the answer comes when the gate opens
		req, err := http.NewRequest(http.MethodPost, a.URL+"/api/v1/workspaces/demo/messages",
			strings.NewReader(`{"command":"@call gate\n@say Open.","multitask_strategy":"enqueue"}`))
		if err != nil {
			return
		}
		req.Header.Set("Authorization", "Bearer "+a.Key)
		req.Header.Set("Content-Type", "application/json")
		if res, err := (&http.Client{Transport: a.Transport}).Do(req); err == nil {
			res.Body.Close()
		}
	}()
	a.Gate.Await(t)
	b := w.start(t, a)
	if text := b.browser(t).follow(t, waits); !strings.Contains(text, "You can close this window") {
		t.Fatalf("the last page is %s", text)
	}
	for _, id := range []string{session, other} {
		got := b.ended(t, id)
		if !strings.Contains(got, "you send Bearer") || strings.Count(got, "\ntool_use ") != 1 ||
			strings.Count(got, "\ntool_again ") != 1 || strings.Count(got, "\ntool_result ") != 1 ||
			!strings.Contains(got, fmt.Sprintf(`"node":"%d"`, b.EventLog.Node())) {
			t.Errorf("after the connection, on node %d: %s", b.EventLog.Node(), got)
		}
	}
	a.Gate.Leave <- struct{}{}

	disconnect()
	text, session = b.ask(t, fmt.Sprintf(call, ""))
	w.auth.SetDeclines(true)
	if text := b.browser(t).follow(t, link(t, text)); !strings.Contains(text, "You have not granted access") {
		t.Errorf("declined: %s", text)
	}
	if got := b.ended(t, session); !strings.Contains(got, "The user has not granted access to the tool server crm") {
		t.Errorf("declined: %s", got)
	}
	w.auth.SetDeclines(false)

	text, session = b.ask(t, fmt.Sprintf(call, ""))
	late := link(t, text)
	if _, err := b.Pool.Exec(t.Context(),
		`UPDATE approvals SET expires_at = clock_timestamp() WHERE kind = 'connect' AND status = 'pending'`); err != nil {
		t.Fatal(err)
	}
	if got := b.ended(t, session); !strings.Contains(got, "The tool server crm was not connected") || strings.Contains(got, "you send") {
		t.Errorf("expired: %s", got)
	}
	if text := b.browser(t).follow(t, late); !strings.Contains(text, "You can close this window") {
		t.Errorf("a late connection is of use for the next turn: %s", text)
	}
	if text, _ := b.ask(t, fmt.Sprintf(call, "")); !strings.Contains(text, `"output":"Done."`) {
		t.Errorf("the next turn: %s", text)
	}

	kept := everything(t, b)
	for _, secret := range w.auth.Issued() {
		canary.Sweep(t, secret, canary.Bytes("tables", kept), canary.Bytes("pages", []byte(user.pages)))
	}
	if _, _, err := b.Sessions.EraseAll(t.Context(), b.Workspace.ID, "test"); err != nil {
		t.Fatal(err)
	}
	var links, grants int
	if err := b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM tool_links WHERE session_id IS NOT NULL`).Scan(&links); err != nil ||
		links != 0 {
		t.Errorf("%d links of erased sessions, %v", links, err)
	}
	if err := b.Workspaces.Delete(t.Context(), b.Workspace.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM tool_grants`).Scan(&grants); err != nil || grants != 0 {
		t.Errorf("%d grants of a deleted workspace, %v", grants, err)
	}
}

// everything returns the rows of all tables.
func everything(t *testing.T, r *replica) (text []byte) {
	t.Helper()
	rows, err := r.Pool.Query(t.Context(),
		`SELECT table_name::text, query_to_xml(format('SELECT * FROM %I', table_name), true, false, '')::text
		FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, content string
		if err := rows.Scan(&name, &content); err != nil {
			t.Fatal(err)
		}
		text = append(text, content...)
	}
	return text
}
