package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/a2a"
	"github.com/parley-server/parley/internal/server/admin"
	"github.com/parley-server/parley/internal/server/agui"
	"github.com/parley-server/parley/internal/server/aisdk"
	"github.com/parley-server/parley/internal/server/mcp"
	"github.com/parley-server/parley/internal/server/openai"
	"github.com/parley-server/parley/internal/server/rest"
	"github.com/parley-server/parley/internal/sse"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/testing/apicheck"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/turn"
)

// service is a process whose client validates every response against the OpenAPI document.
type service struct {
	*apitest.Service
	client *http.Client
	pool   *pgxpool.Pool // not the service's own
	link   *link
}

// quick names the tests that run a server under -short.
var quick = []string{
	"TestConversationContinues", "TestPostAgainWithACursor", "TestRepeatedStreamIsTheSame",
	"TestCancelIsIdempotentUnderAKey", "TestDeniedCallsDoNotRun", "TestResumeInLine", "TestDocumentIsComplete",
	"TestAFileGoesInAndOut", "TestUnknownFieldsAreExplained",
}

func start(t testing.TB, change func(*server.Config)) *service {
	t.Helper()
	return startTurns(t, change, nil)
}

// startTurns is start with a changed configuration of turns.
func startTurns(t testing.TB, change func(*server.Config), changeTurns func(*turn.Config)) *service {
	t.Helper()
	slow.Test(t, "runs a server", quick...)
	return process(t, dbtest.New(t), nil, change, changeTurns)
}

// replica is another process on the same database, with the same keys.
func (s *service) replica(t testing.TB, changeTurns func(*turn.Config)) *service {
	t.Helper()
	return process(t, s.pool, s.Service, nil, changeTurns)
}

// process starts a process on the database of a pool.
func process(t testing.TB, pool *pgxpool.Pool, peer *apitest.Service, change func(*server.Config),
	changeTurns func(*turn.Config)) *service {
	t.Helper()
	slow.Test(t, "runs a server", quick...)
	s := &service{pool: pool, link: &link{}}
	s.Service = apitest.New(t, apitest.Options{
		Pool: s.link.pool(t, pool.Config().ConnString()), Peer: peer, Turns: changeTurns,
		Tools: func(*apitest.Service) []tool.Tool { return []tool.Tool{look{}} },
	})
	srv := s.Server(t, func(c *server.Config) {
		if c.Version = "1.2.3"; change != nil {
			change(c)
		}
	})
	s.serve(t, s.everything(t, srv))
	t.Cleanup(s.link.mend) // runs before the other cleanups: stopping needs a database
	return s
}

// protocols returns the handlers of the operations that the document marks with x-served-by.
func (s *service) protocols(t testing.TB, srv *server.Server) []server.Routes {
	t.Helper()
	routes, err := mcp.New(srv, s.Wiki)
	if err != nil {
		t.Fatal(err)
	}
	return []server.Routes{routes, admin.New(srv, s.Administration()), a2a.New(srv, true), openai.New(srv), aisdk.New(srv), agui.New(srv)}
}

// everything returns the handler of all operations in the document.
func (s *service) everything(t testing.TB, srv *server.Server) http.Handler {
	t.Helper()
	routes, err := rest.New(srv, func(ctx context.Context) error { return s.Pool.Ping(ctx) })
	if err != nil {
		t.Fatal(err)
	}
	return srv.NewRouter(append(s.protocols(t, srv), routes)...)
}

// asking requires an approval for every call of a tool without a rule, with the given time to
// answer.
func asking(window time.Duration) func(*turn.Config) {
	return func(c *turn.Config) { c.Permissions, c.Window = permission.New(c.Pool), window }
}

// serve listens, and creates the client.
func (s *service) serve(t testing.TB, handler http.Handler) {
	s.Serve(t, handler)
	s.client = &http.Client{
		Transport: &apicheck.Transport{T: t, Next: s.Transport, Doc: apicheck.Load(t, handler)},
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			t.Errorf("redirected to %s", r.URL)
			return http.ErrUseLastResponse
		},
	}
}

// call is one request. The zero value is GET of the root, with the service's key.
type call struct {
	method string
	path   string
	key    string // "-" sends none
	header []string
	body   string
}

// request returns a request for a path below the demo workspace, or for an absolute one.
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
	r, err := http.NewRequestWithContext(t.Context(), c.method, s.URL+c.path, body)
	if err != nil {
		t.Fatal(err)
	}
	switch c.key {
	case "-":
	case "":
		r.Header.Set("Authorization", "Bearer "+s.Key)
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

// reply is a complete response.
type reply struct {
	status int
	header http.Header
	text   string
	Error  struct {
		Type, Code, Message, Param string
		Violations                 []violation
		Candidates                 []string
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
	if r.status < 400 { // in a success, "error" has another meaning
		into = &struct{ Data *json.RawMessage }{&r.Data}
	}
	a2a := strings.HasPrefix(c.path, "/a2a/v1/") // whose errors have a number as their code
	if err := json.Unmarshal(body, into); err != nil && !a2a {
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

// open sends a request whose response must be a stream.
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

// body returns a message with additional fields, each as `"name":value`.
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

// until reads to the first frame with an event.
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

// sessionOf returns the session id of an open frame.
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

// names returns the events of frames, adjacent texts as one.
func names(frames []frame) string {
	var list []string
	for _, f := range frames {
		if n := len(list); f.event != "text" || n == 0 || list[n-1] != "text" {
			list = append(list, f.event)
		}
	}
	return strings.Join(list, " ")
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

// held is a command whose turn writes text, waits at the gate and continues.
const held = "@text 3 deltas\n@call gate {}\n@text 3 deltas"

// link is the service's connection to the database, which can be cut.
type link struct {
	mu    sync.Mutex
	down  bool
	conns map[net.Conn]struct{}
	asked map[string]int // number of queries by name
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

// count returns how often the service has run a query.
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
