package a2a_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/a2a"
	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/callback"
	"github.com/parley-server/parley/internal/dbtest"
	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/filestore"
	"github.com/parley-server/parley/internal/limit"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/guide"
	"github.com/parley-server/parley/internal/permission"
	"github.com/parley-server/parley/internal/runner"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/skill"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/attach"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/internal/vault"
	"github.com/parley-server/parley/internal/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is one running process on a database of its own.
type service struct {
	url       string
	client    *http.Client
	pool      *pgxpool.Pool
	keys      *apikey.Store
	sessions  *session.Store
	skills    *skill.Store
	vault     *vault.Store
	files     *filestore.Store
	turns     *turn.Service
	workspace workspace.Workspace
	key       string // scope a2a
	gate      *gate
	hook      *hook
	halt      context.CancelFunc // ends requests, as a process that stops does
}

// start runs a service. Tools that no rule knows ask for an approval.
func start(t testing.TB, change func(*a2a.Config)) *service {
	t.Helper()
	pool := dbtest.Pool(t, dbtest.DSN(t))
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	workspaces := workspace.New(pool)
	ws, err := workspaces.Create(t.Context(), "demo", "Demo", "")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{pool: pool, keys: apikey.New(pool, log), skills: skill.New(pool), workspace: ws, gate: newGate(), hook: newHook(t)}
	s.key = s.issue(t, ws, apikey.A2A)
	ring, err := vault.ParseKeys(vault.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	s.vault = vault.New(pool, ring)
	if err := s.vault.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	guard, err := egress.New(egress.Config{Allow: []string{"http://hook.example:80=" + s.hook.addr}})
	if err != nil {
		t.Fatal(err)
	}
	s.files = filestore.New(pool, ring, filestore.Options{})
	callbacks := callback.NewStore(pool, ring, guard)
	s.sessions = session.New(pool, session.Options{Log: log, Erase: []session.Eraser{s.files.Erase, callbacks.Erase}})
	guide := guide.New()
	s.turns, err = turn.New(turn.Config{
		Pool: pool, Sessions: s.sessions, Workspaces: workspaces, Skills: s.skills, Vault: s.vault, Files: s.files, Callbacks: callbacks,
		Permissions: permission.New(pool), Tools: func(*runner.Run) []tool.Tool { return []tool.Tool{s.gate, touch{}, attach.Tool(s.files, nil)} }, Log: log, Workers: 20,
		Model: func(string) (model.Model, error) { return guide, nil }, Tell: a2a.Tell(s.sessions, s.files, "https://parley.example"),
	})
	if err != nil {
		t.Fatal(err)
	}
	limits := limit.New(pool, limit.Options{Limits: limit.Limits{Messages: 100_000, Calls: 100_000, Streams: 1000}, Node: s.sessions.Node(), Log: log})
	for _, f := range []func(context.Context) error{s.sessions.Run, s.turns.Run, s.keys.Run, limits.Run} {
		run(t, f)
	}
	cfg := a2a.Config{Config: door.Config{Sessions: s.sessions, Workspaces: workspaces, Keys: s.keys, Limits: limits, Log: log, Version: "1.2.3"},
		Turns: s.turns, Files: s.files, Skills: s.skills, Callbacks: callbacks}
	if change != nil {
		change(&cfg)
	}
	handlers, err := a2a.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.serve(t, handlers)
	return s
}

func (s *service) serve(t testing.TB, handlers map[string]http.Handler) {
	mux := http.NewServeMux()
	for path, h := range handlers {
		mux.Handle(path, h)
	}
	srv := httptest.NewUnstartedServer(mux)
	base, halt := context.WithCancel(context.Background())
	srv.Config.BaseContext = func(net.Listener) context.Context { return base }
	srv.Start()
	transport := &http.Transport{DisableCompression: true}
	s.url, s.halt, s.client = srv.URL, halt, &http.Client{Transport: transport}
	t.Cleanup(func() {
		halt()
		transport.CloseIdleConnections()
		srv.Close()
	})
}

// run keeps f running until the test ends.
func run(t testing.TB, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("stopped with %v", err)
		}
	})
}

// issue makes a key.
func (s *service) issue(t testing.TB, ws workspace.Workspace, scopes ...apikey.Scope) string {
	t.Helper()
	_, text, err := s.keys.Create(t.Context(), apikey.Grant{Workspace: ws.ID, Name: "test", Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// another makes a second workspace and a key for it.
func (s *service) another(t testing.TB) string {
	t.Helper()
	ws, err := workspace.New(s.pool).Create(t.Context(), "another", "", "")
	if err != nil {
		t.Fatal(err)
	}
	return s.issue(t, ws, apikey.All...)
}

// gate is a tool that waits until it is opened: with it a test holds a turn.
type gate struct {
	entered chan struct{}
	leave   chan struct{}
}

func newGate() *gate { return &gate{make(chan struct{}, 100), make(chan struct{}, 100)} }

// Spec has the name of a tool that may always run.
func (g *gate) Spec() tool.Spec {
	return tool.Spec{Name: "read", Description: "Waits.", Schema: json.RawMessage(`{"type":"object"}`), Idempotent: true}
}

func (g *gate) Call(ctx context.Context, _ tool.Call) (tool.Result, error) {
	g.entered <- struct{}{}
	select {
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	case <-g.leave:
	}
	return tool.Result{OK: true, Output: "open"}, nil
}

// touch is a tool that no rule knows.
type touch struct{}

func (touch) Spec() tool.Spec {
	return tool.Spec{Name: "touch", Description: "Touches.", Schema: json.RawMessage(`{"type":"object"}`)}
}

func (touch) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{OK: true, Output: "touched"}, nil
}

// held is a command whose turn says something, waits at the gate and goes on.
const held = "@say before the gate\n@call read {}\n@say and after it"

// asking is a command whose turn needs an approval.
const asking = "@say I would touch it.\n@call touch {\"what\":\"it\"}\n@say It is done."

// hook receives push notifications, at http://hook.example/.
type hook struct {
	addr string
	got  chan notification
}

type notification struct {
	header http.Header
	body   []byte
}

func newHook(t testing.TB) *hook {
	h := &hook{got: make(chan notification, 100)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.got <- notification{r.Header, body}
	}))
	t.Cleanup(srv.Close)
	h.addr = srv.Listener.Addr().String()
	return h
}
