package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/callback"
	"github.com/parley-server/parley/internal/dbtest"
	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/filestore"
	"github.com/parley-server/parley/internal/httpapi"
	"github.com/parley-server/parley/internal/limit"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/guide"
	"github.com/parley-server/parley/internal/permission"
	"github.com/parley-server/parley/internal/runner"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/skill"
	"github.com/parley-server/parley/internal/sse"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/attach"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/internal/vault"
	"github.com/parley-server/parley/internal/workdir"
	"github.com/parley-server/parley/internal/workspace"
)

// service is one running process on a database of its own, asked through a client
// that holds every answer against the OpenAPI document.
type service struct {
	url       string
	client    *http.Client
	pool      *pgxpool.Pool // not the service's own
	link      *link
	keys      *apikey.Store
	sessions  *session.Store
	skills    *skill.Store
	vault     *vault.Store
	files     *filestore.Store
	workspace workspace.Workspace
	key       string // may do everything
	ring      *vault.Keyring
	gate      *gate
	halt      context.CancelFunc // ends requests, as a process that stops does
}

func start(t testing.TB, change func(*httpapi.Config)) *service {
	t.Helper()
	return startTurns(t, change, nil)
}

// startTurns is start with a say in how turns run.
func startTurns(t testing.TB, change func(*httpapi.Config), changeTurns func(*turn.Config)) *service {
	t.Helper()
	dsn := dbtest.DSN(t)
	s := &service{pool: dbtest.Pool(t, dsn), link: &link{}, gate: newGate()}
	s.run(t, dsn, change, changeTurns)
	return s
}

// replica is another process on the same database, with the same keys.
func (s *service) replica(t testing.TB, changeTurns func(*turn.Config)) *service {
	t.Helper()
	r := &service{pool: s.pool, link: &link{}, gate: s.gate, workspace: s.workspace, key: s.key, ring: s.ring}
	r.run(t, s.pool.Config().ConnString(), nil, changeTurns)
	return r
}

// run starts the parts of a process. The first on a database makes the workspace.
func (s *service) run(t testing.TB, dsn string, change func(*httpapi.Config), changeTurns func(*turn.Config)) {
	t.Helper()
	pool := s.link.pool(t, dsn)
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	workspaces := workspace.New(pool)
	s.keys = apikey.New(pool, log)
	if s.key == "" {
		ws, err := workspaces.Create(t.Context(), "demo", "", "")
		if err != nil {
			t.Fatal(err)
		}
		s.workspace, s.key = ws, s.issue(t, ws, apikey.All...)
		if s.ring, err = vault.ParseKeys(vault.GenerateKey()); err != nil {
			t.Fatal(err)
		}
	}
	guard, err := egress.New(egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.files = filestore.New(pool, s.ring, filestore.Options{})
	s.skills, s.vault = skill.New(pool), vault.New(pool, s.ring)
	if err := s.vault.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	callbacks := callback.NewStore(pool, s.ring, guard)
	s.sessions = session.New(pool, session.Options{Log: log, Erase: []session.Eraser{s.files.Erase, callbacks.Erase, workdir.New(pool, workdir.Options{}).Erase}})
	guide := guide.New()
	tc := turn.Config{
		Pool: pool, Sessions: s.sessions, Workspaces: workspaces, Skills: s.skills, Vault: s.vault,
		Files: s.files, Callbacks: callbacks,
		Tools: func(*runner.Run) []tool.Tool { return []tool.Tool{s.gate, look{}, attach.Tool(s.files, nil)} }, Log: log, Workers: 20,
		Model: func(string) (model.Model, error) { return guide, nil },
	}
	if changeTurns != nil {
		changeTurns(&tc)
	}
	turns, err := turn.New(tc)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s.sessions.Run)
	run(t, turns.Run)
	run(t, s.keys.Run)
	limits := limit.New(pool, limit.Options{Limits: plenty, Node: s.sessions.Node(), Log: log})
	run(t, limits.Run)

	cfg := httpapi.Config{Sessions: s.sessions, Files: s.files, Callbacks: tc.Callbacks, Turns: turns, Workspaces: workspaces, Keys: s.keys, Limits: limits, Log: log, Version: "1.2.3",
		Ready: func(ctx context.Context) error { return pool.Ping(ctx) }}
	if change != nil {
		change(&cfg)
	}
	handler, err := httpapi.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.serve(t, handler)
	t.Cleanup(s.link.mend) // the first of all: stopping takes a database
}

// asking makes every call of a tool that the rules do not know need an approval, and
// ends the wait for it after window.
func asking(window time.Duration) func(*turn.Config) {
	return func(c *turn.Config) { c.Permissions, c.Window = permission.New(c.Pool), window }
}

// plenty is what no test uses up, and yet everything is counted.
var plenty = limit.Limits{Messages: 100_000, Calls: 100_000, Streams: 1000}

// serve listens, and makes the client.
func (s *service) serve(t testing.TB, handler http.Handler) {
	srv := httptest.NewUnstartedServer(handler)
	base, halt := context.WithCancel(context.Background())
	srv.Config.MaxHeaderBytes = httpapi.HeaderBytes
	srv.Config.BaseContext = func(net.Listener) context.Context { return base }
	srv.Start()
	s.url, s.halt = srv.URL, halt
	transport := &http.Transport{DisableCompression: true}
	s.client = &http.Client{
		Transport: &checked{t: t, next: transport, doc: loadDocument(t, handler)},
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			t.Errorf("redirected to %s", r.URL)
			return http.ErrUseLastResponse
		},
	}
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
	_, text, err := s.keys.Create(t.Context(), apikey.Grant{Workspace: ws.ID, Name: t.Name()[:min(len(t.Name()), 100)], Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// another makes a second workspace and a key that may do everything in it.
func (s *service) another(t testing.TB) (workspace.Workspace, string) {
	t.Helper()
	ws, err := workspace.New(s.pool).Create(t.Context(), "another", "", "")
	if err != nil {
		t.Fatal(err)
	}
	return ws, s.issue(t, ws, apikey.All...)
}

// call is one request. The zero value is GET of the root, with the service's key.
type call struct {
	method string
	path   string
	key    string // "-" sends none
	header []string
	body   string
}

// request makes a request for a path below the demo workspace, or for an absolute one.
func (s *service) request(t testing.TB, c call) *http.Request {
	t.Helper()
	if c.method == "" {
		c.method = http.MethodGet
	}
	if !strings.HasPrefix(c.path, "/") {
		c.path = "/api/v1/workspaces/demo/" + c.path
	}
	var body io.Reader
	if c.body != "" {
		body = strings.NewReader(c.body)
	}
	r, err := http.NewRequestWithContext(t.Context(), c.method, s.url+c.path, body)
	if err != nil {
		t.Fatal(err)
	}
	switch c.key {
	case "-":
	case "":
		r.Header.Set("Authorization", "Bearer "+s.key)
	default:
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	if c.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(c.header); i += 2 {
		if r.Header.Del(c.header[i]); c.header[i+1] != "" {
			r.Header.Add(c.header[i], c.header[i+1])
		}
	}
	return r
}

// do sends a request; the caller closes the body.
func (s *service) do(t testing.TB, c call) *http.Response {
	t.Helper()
	res, err := s.client.Do(s.request(t, c))
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// reply is a whole answer.
type reply struct {
	status int
	header http.Header
	text   string
	Error  struct {
		Type, Code, Message, Param string
		Violations                 []violation
		RequiredScope              string `json:"required_scope"`
		RetryAfter                 int    `json:"retry_after"`
		Turn                       map[string]any
	}
	RequestID string `json:"request_id"`
	Data      json.RawMessage
}

type violation struct {
	Param, Rule, Message, Suggestion string
	Expected                         any
	Allowed                          []any
}

func (s *service) get(t testing.TB, c call) reply {
	t.Helper()
	res := s.do(t, c)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	r := reply{status: res.StatusCode, header: res.Header, text: string(body)}
	if len(body) == 0 || !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		return r
	}
	var into any = &r
	if r.status < 400 { // "error" is something else there
		into = &struct{ Data *json.RawMessage }{&r.Data}
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

// frame is one frame of a stream.
type frame struct {
	event, id, data string
	retry           int64 // ms
}

// stream is an open stream.
type stream struct {
	t      testing.TB
	res    *http.Response
	reader *sse.Reader
}

// open sends a request that must answer with a stream.
func (s *service) open(t testing.TB, c call) *stream {
	t.Helper()
	res := s.do(t, c)
	t.Cleanup(func() { res.Body.Close() })
	if ct := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || ct != "text/event-stream; charset=utf-8" {
		body, _ := io.ReadAll(res.Body)
		t.Fatalf("%d %s: %s", res.StatusCode, ct, body)
	}
	return &stream{t, res, sse.NewReader(res.Body)}
}

// say sends a command and opens its stream.
func (s *service) say(t testing.TB, command string, fields ...string) *stream {
	t.Helper()
	return s.open(t, call{method: "POST", path: "messages", body: body(t, command, fields...)})
}

// body makes a message with more fields, each as `"name":value`.
func body(t testing.TB, command string, fields ...string) string {
	t.Helper()
	text, err := json.Marshal(command)
	if err != nil {
		t.Fatal(err)
	}
	return "{" + strings.Join(append([]string{`"command":` + string(text)}, fields...), ",") + "}"
}

// next returns the next frame; ok is false at the end of the stream.
func (s *stream) next() (frame, bool) {
	s.t.Helper()
	f, err := s.reader.Next()
	if errors.Is(err, io.EOF) {
		return frame{}, false
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return frame{f.Event, f.ID, string(f.Data), f.Retry.Milliseconds()}, true
}

// until reads to the first frame of a kind.
func (s *stream) until(event string) []frame {
	s.t.Helper()
	var all []frame
	for {
		f, ok := s.next()
		if !ok {
			s.t.Fatalf("no %s in %v", event, all)
		}
		if all = append(all, f); f.event == event {
			return all
		}
	}
}

// rest reads to the end of the stream.
func (s *stream) rest() []frame {
	s.t.Helper()
	var all []frame
	for {
		f, ok := s.next()
		if !ok {
			return all
		}
		all = append(all, f)
	}
}

func (s *stream) close() { s.res.Body.Close() }

// sessionOf reads the id out of an open frame.
func sessionOf(t testing.TB, f frame) string {
	t.Helper()
	var open struct {
		ID string `json:"session_id"`
	}
	if err := json.Unmarshal([]byte(f.data), &open); err != nil || open.ID == "" {
		t.Fatalf("%+v: %v", f, err)
	}
	return open.ID
}

// names are the events of frames, adjacent texts as one.
func names(frames []frame) string {
	var list []string
	for _, f := range frames {
		if n := len(list); f.event != "text" || n == 0 || list[n-1] != "text" {
			list = append(list, f.event)
		}
	}
	return strings.Join(list, " ")
}

// gate is a tool that waits until it is opened: with it a test holds a turn.
type gate struct {
	entered chan struct{}
	leave   chan struct{}
}

func newGate() *gate { return &gate{make(chan struct{}, 100), make(chan struct{}, 100)} }

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

// look is a tool that reads a document.
type look struct{}

func (look) Spec() tool.Spec {
	return tool.Spec{Name: "look", Description: "Reads.", Schema: json.RawMessage(`{"type":"object"}`), Idempotent: true}
}

func (look) Call(_ context.Context, c tool.Call) (tool.Result, error) {
	var in struct{ At string }
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return tool.Result{}, err
	}
	return tool.Result{OK: true, Output: "read", References: []event.Reference{{Path: in.At, Source: "read"}}}, nil
}

// held is a command whose turn says something, waits at the gate and goes on.
const held = "@text 3 deltas\n@call gate {}\n@text 3 deltas"

// link is the service's way to the database. It can be cut.
type link struct {
	mu    sync.Mutex
	down  bool
	conns map[net.Conn]struct{}
	asked map[string]int // queries by their names
}

func (l *link) pool(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 16
	dial := config.ConnConfig.DialFunc
	l.conns, l.asked = make(map[net.Conn]struct{}), make(map[string]int)
	config.ConnConfig.Tracer = l
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.down {
			return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("the link is cut")}
		}
		conn, err := dial(ctx, network, addr)
		if err == nil {
			l.conns[conn] = struct{}{}
		}
		return conn, err
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// TraceQueryStart implements pgx.QueryTracer.
func (l *link) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if name, ok := strings.CutPrefix(data.SQL, "-- name: "); ok {
		name, _, _ = strings.Cut(name, " ")
		l.mu.Lock()
		defer l.mu.Unlock()
		l.asked[name]++
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (l *link) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// count is how often the service has asked a query.
func (l *link) count(query string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[query]
}

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for conn := range l.conns {
		conn.Close()
	}
	clear(l.conns)
}

func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}
