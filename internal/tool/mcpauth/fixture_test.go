package mcpauth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/egresstest"
	"github.com/parley-server/parley/internal/testing/oauthtest"
	"github.com/parley-server/parley/internal/tool/mcpauth"
	"github.com/parley-server/parley/internal/tool/mcptool"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// crm is the entry of the server.
var crm = toolset.Entry{Name: "crm", URL: "https://crm.example/mcp", Auth: toolset.Auth{OAuth: true}}

// world is a workspace with a server that requires OAuth, and its authorization server,
// https://auth.example.
type world struct {
	pool      *pgxpool.Pool
	workspace uuid.UUID
	store     *toolset.Store
	vault     *vault.Store
	runner    *toolenv.Runner
	auth      *oauthtest.Server
	log       *lockedBuffer
	service   *mcpauth.Service
	browser   *http.Client
	// replica returns the service of another process, which has a pool.
	replica func(*pgxpool.Pool) *mcpauth.Service
}

// newWorld starts a world. answer may serve requests to the server before it does; sites are further
// hosts.
func newWorld(t *testing.T, answer func(w http.ResponseWriter, r *http.Request) bool, sites map[string]http.Handler) *world {
	t.Helper()
	w := &world{pool: dbtest.New(t), log: new(lockedBuffer), auth: oauthtest.New("https://auth.example", crm.URL)}
	ws, err := workspace.New(w.pool).Create(t.Context(), "w", "Team", "")
	if err != nil {
		t.Fatal(err)
	}
	w.workspace = ws.ID
	keys, err := vault.ParseKeys(vault.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	w.vault = vault.New(w.pool, keys)
	if err := w.vault.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	served := mcp.NewServer(&mcp.Implementation{Name: "crm", Version: "1"}, nil)
	mcp.AddTool(served, &mcp.Tool{Name: "whoami"}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult,
		any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "with " + r.Extra.Header.Get("Authorization")}}}, nil, nil
	})
	protected := w.auth.Protect(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		return served
	}, &mcp.StreamableHTTPOptions{DisableLocalhostProtection: true}))
	all := map[string]http.Handler{"auth.example": w.auth, "crm.example": http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if answer == nil || !answer(out, r) {
			protected.ServeHTTP(out, r)
		}
	})}
	for name, h := range sites {
		all[name] = h
	}
	authority := egresstest.NewAuthority(t)
	config := egress.Config{Roots: authority.Roots()}
	at := make(map[string]string)
	for name, h := range all {
		at[name] = authority.Site(t, h, name)
		config.Allow = append(config.Allow, name+":443="+at[name])
	}
	guard, err := egress.New(config)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), w.log), &slog.HandlerOptions{Level: slog.LevelDebug}))
	start := func(pool *pgxpool.Pool) (*toolenv.Runner, *mcpauth.Service) {
		runner := toolenv.New(toolenv.Config{Pool: pool, Guard: guard, Vault: vault.New(pool, keys), Files: filestore.New(pool, keys,
			filestore.Options{}),
			Folders: workdir.New(pool, workdir.Options{}), Dir: t.TempDir(), Log: log})
		return runner, &mcpauth.Service{Store: toolset.NewStore(pool), Keys: keys, Base: "https://parley.example", Log: log,
			Open: func(workspace uuid.UUID) mcpauth.Env { return runner.OpenProbe(workspace) }}
	}
	w.runner, w.service = start(w.pool)
	w.store = w.service.Store
	w.replica = func(pool *pgxpool.Pool) *mcpauth.Service {
		_, service := start(pool)
		return service
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(address)
		return new(net.Dialer).DialContext(ctx, network, at[host])
	}, TLSClientConfig: authority.Client()}
	t.Cleanup(transport.CloseIdleConnections)
	w.browser = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return w
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) Bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.b.Bytes())
}

// add adds the entry.
func (w *world) add(t *testing.T, e toolset.Entry) toolset.Server {
	t.Helper()
	s, _, err := w.store.Add(t.Context(), w.workspace, e, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// link makes a link for a caller.
func (w *world) link(t *testing.T, caller string) toolset.Link {
	t.Helper()
	_, code, err := w.store.CreateLink(t.Context(), toolset.NewLink{Workspace: w.workspace, Server: crm.Name, Caller: caller,
		Life: toolset.LinkLife})
	if err != nil {
		t.Fatal(err)
	}
	link, err := w.store.LinkByCode(t.Context(), code)
	if err != nil {
		t.Fatal(err)
	}
	return link
}

// authorize opens the address of an authorization request, and returns where the browser goes then.
func (w *world) authorize(t *testing.T, link toolset.Link) (state string, a mcpauth.Answer) {
	t.Helper()
	address, state, err := w.service.Begin(t.Context(), link)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := w.browser.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	back, err := url.Parse(res.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(back.String(), "https://parley.example/connect/callback?") {
		t.Fatalf("%s: %d, sent to %s", address, res.StatusCode, back)
	}
	q := back.Query()
	return state, mcpauth.Answer{State: q.Get("state"), Code: q.Get("code"), Issuer: q.Get("iss"), Error: q.Get("error")}
}

// connect connects the server for a caller.
func (w *world) connect(t *testing.T, caller string) toolset.Grant {
	t.Helper()
	state, answer := w.authorize(t, w.link(t, caller))
	link, grant, err := w.service.Finish(t.Context(), answer, state)
	if err != nil {
		t.Fatal(err)
	}
	w.put(t, link, grant)
	return grant
}

// put stores a grant, as turn.Service.Connect does.
func (w *world) put(t *testing.T, link toolset.Link, g toolset.Grant) {
	t.Helper()
	if err := w.tryPut(t, link, g); err != nil {
		t.Fatal(err)
	}
}

// tryPut stores a grant, if its link still works.
func (w *world) tryPut(t *testing.T, link toolset.Link, g toolset.Grant) error {
	t.Helper()
	return pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		if err := w.store.PutGrant(t.Context(), tx, g); err != nil {
			return err
		}
		return w.store.EndLink(t.Context(), tx, link.ID)
	})
}

// whoami lists the tools as a caller and calls one.
func (w *world) whoami(t *testing.T, caller string) (string, error) {
	t.Helper()
	server, err := w.store.Find(t.Context(), w.workspace, crm.Name)
	if err != nil {
		t.Fatal(err)
	}
	probe := mcptool.Probe{Open: func(ws uuid.UUID) mcptool.ClosingEnv {
		return w.runner.OpenProbe(ws)
	}, Grants: w.service.OfCaller}.As(caller)
	if _, _, err := probe.List(t.Context(), w.workspace, server); err != nil {
		return "", err
	}
	tool := toolset.Tool{Name: "crm__whoami", OwnName: "whoami", Definition: &toolset.Definition{Schema: json.RawMessage(`{"type":"object"}`)}}
	res, err := probe.Call(t.Context(), w.workspace, server, tool, []byte(`{}`))
	if err == nil && !res.OK {
		t.Errorf("the call failed: %s", res.Output)
	}
	return res.Output, err
}
