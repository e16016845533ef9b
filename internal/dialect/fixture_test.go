package dialect_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/agui"
	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/callback"
	"github.com/parley-server/parley/internal/dbtest"
	"github.com/parley-server/parley/internal/dialect"
	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/filestore"
	"github.com/parley-server/parley/internal/limit"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/guide"
	"github.com/parley-server/parley/internal/openaiapi"
	"github.com/parley-server/parley/internal/permission"
	"github.com/parley-server/parley/internal/runner"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/skill"
	"github.com/parley-server/parley/internal/sse"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/internal/uistream"
	"github.com/parley-server/parley/internal/vault"
	"github.com/parley-server/parley/internal/workspace"
)

// service is one running process on a database of its own.
type service struct {
	url       string
	client    *http.Client
	pool      *pgxpool.Pool
	keys      *apikey.Store
	skills    *skill.Store
	vault     *vault.Store
	sessions  *session.Store
	turns     *turn.Service
	workspace workspace.Workspace
	key       string // may do everything
	gate      *gate
	halt      context.CancelFunc // ends requests, as a process that stops does
}

// options are what a test can change.
type options struct {
	limits limit.Limits
	window time.Duration // every call of a tool needs an approval, and has this time for it; 0: none does
}

func start(t *testing.T, opt options) *service {
	t.Helper()
	pool := dbtest.New(t)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	ring, err := vault.ParseKeys(vault.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	guard, err := egress.New(egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{pool: pool, keys: apikey.New(pool, log), skills: skill.New(pool), vault: vault.New(pool, ring),
		sessions: session.New(pool, session.Options{Log: log}), gate: &gate{make(chan struct{}, 100), make(chan struct{}, 100)}}
	if err := s.vault.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	workspaces, model1 := workspace.New(pool), guide.New()
	tc := turn.Config{
		Pool: pool, Sessions: s.sessions, Workspaces: workspaces, Skills: s.skills, Vault: s.vault, Files: filestore.New(pool, ring, filestore.Options{}),
		Callbacks: callback.NewStore(pool, ring, guard), Tools: func(*runner.Run) []tool.Tool { return []tool.Tool{s.gate} }, Log: log, Workers: 10,
		Model: func(string) (model.Model, error) { return model1, nil },
	}
	if opt.window != 0 {
		tc.Permissions, tc.Window = permission.New(pool), opt.window
	}
	if s.turns, err = turn.New(tc); err != nil {
		t.Fatal(err)
	}
	if s.workspace, err = workspaces.Create(t.Context(), "demo", "", ""); err != nil {
		t.Fatal(err)
	}
	s.key = s.issue(t, s.workspace, apikey.All...)
	if opt.limits == (limit.Limits{}) {
		opt.limits = limit.Limits{Messages: 100_000, Calls: 100_000, Streams: 1000}
	}
	limits := limit.New(pool, limit.Options{Limits: opt.limits, Node: s.sessions.Node(), Log: log})
	for _, part := range []func(context.Context) error{s.sessions.Run, s.turns.Run, s.keys.Run, limits.Run} {
		run(t, part)
	}
	s.serve(t, dialect.Config{Config: door.Config{Sessions: s.sessions, Workspaces: workspaces, Keys: s.keys, Limits: limits, Log: log}, Turns: s.turns, Skills: s.skills})
	return s
}

// serve listens with every door.
func (s *service) serve(t *testing.T, cfg dialect.Config) {
	t.Helper()
	routes := make(map[string]http.Handler)
	for _, door := range []func(dialect.Config) (map[string]http.Handler, error){openaiapi.New, uistream.New, agui.New} {
		own, err := door(cfg)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(routes, own)
	}
	mux := http.NewServeMux()
	for path, h := range routes {
		mux.Handle(path, h)
	}
	srv := httptest.NewUnstartedServer(mux)
	base, halt := context.WithCancel(context.Background())
	srv.Config.BaseContext = func(net.Listener) context.Context { return base }
	srv.Start()
	s.url, s.halt, s.client = srv.URL, halt, srv.Client()
	t.Cleanup(func() {
		halt()
		srv.Close()
	})
}

// run keeps f running until the test ends.
func run(t *testing.T, f func(context.Context) error) {
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

func (s *service) issue(t *testing.T, ws workspace.Workspace, scopes ...apikey.Scope) string {
	t.Helper()
	_, text, err := s.keys.Create(t.Context(), apikey.Grant{Workspace: ws.ID, Name: "test", Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// call is one request. The zero value is GET with the service's key.
type call struct {
	method, path, body string
	key                string // "-" sends none
	header             []string
}

func (s *service) do(t *testing.T, c call) *http.Response {
	t.Helper()
	if c.method == "" {
		c.method = http.MethodGet
		if c.body != "" {
			c.method = http.MethodPost
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), c.method, s.url+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	if c.key == "" {
		c.key = s.key
	}
	if c.key != "-" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	if c.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(c.header); i += 2 {
		r.Header.Set(c.header[i], c.header[i+1])
	}
	res, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// reply is a whole answer.
type reply struct {
	status int
	header http.Header
	text   string
	body   map[string]any
	code   string // of an error
	err    error  // the answer was cut off
}

func (s *service) get(t *testing.T, c call) reply {
	t.Helper()
	return whole(s.do(t, c))
}

func whole(res *http.Response) reply {
	text, err := io.ReadAll(res.Body)
	r := reply{status: res.StatusCode, header: res.Header, text: string(text), err: err}
	_ = json.Unmarshal(text, &r.body)
	if e, ok := r.body["error"].(map[string]any); ok {
		r.code, _ = e["code"].(string)
	}
	return r
}

// frames are the data of a stream's frames; ok is false where it was cut off.
func frames(t *testing.T, res *http.Response) (list []string, ok bool) {
	t.Helper()
	if ct := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || ct != "text/event-stream; charset=utf-8" {
		t.Fatalf("%d %s: %s", res.StatusCode, ct, whole(res).text)
	}
	reader := sse.NewReader(res.Body)
	for {
		f, err := reader.Next()
		if err != nil {
			return list, err == io.EOF
		}
		if named := strings.Contains(string(f.Data), `"type":"response.`); named != (f.Event != "message") || f.ID != "" {
			t.Errorf("a frame is called %q and has the id %q: %s", f.Event, f.ID, f.Data)
		}
		list = append(list, string(f.Data))
	}
}

// stream is what a call streams to its end.
func (s *service) stream(t *testing.T, c call) []string {
	t.Helper()
	list, ok := frames(t, s.do(t, c))
	if !ok {
		t.Errorf("cut off after %v", list)
	}
	return list
}

// gate is a tool that waits until it is opened: with it a test holds a turn.
type gate struct{ entered, leave chan struct{} }

func (g *gate) Spec() tool.Spec {
	return tool.Spec{Name: "gate", Description: "Waits.", Schema: json.RawMessage(`{"type":"object"}`), Idempotent: true}
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

// held is a command whose turn says something, waits at the gate and goes on.
const held = "@text 3 deltas\n@call gate {}\n@text 3 deltas"

func quote(text string) string { return string(dialect.Quote(text)) }

// declare registers a credential without a value.
func (s *service) declare(t *testing.T, name string) {
	t.Helper()
	if _, err := s.vault.Register(t.Context(), s.workspace.ID, vault.Registration{Name: name, Hosts: []string{"example.com"}}, "test"); err != nil {
		t.Fatal(err)
	}
}
