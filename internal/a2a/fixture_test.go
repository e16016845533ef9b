package a2a_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/a2a"
	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/callback"
	"github.com/parley-server/parley/internal/dbtest"
	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/filestore"
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
	cfg := a2a.Config{Sessions: s.sessions, Turns: s.turns, Workspaces: workspaces, Keys: s.keys, Files: s.files, Skills: s.skills, Callbacks: callbacks,
		Limits: limits, Log: log, Version: "1.2.3"}
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

// caller speaks one version with one key.
type caller struct {
	*service
	t      testing.TB
	v      string // "" sends no version
	key    string
	header map[string]string
}

func (s *service) speaks(t testing.TB, version string) *caller {
	return &caller{service: s, t: t, v: version, key: s.key}
}

// with is the same caller with another header.
func (c *caller) with(name, value string) *caller {
	other := *c
	other.header = map[string]string{name: value}
	return &other
}

// by is the same caller with another key.
func (c *caller) by(key string) *caller {
	other := *c
	other.key = key
	return &other
}

// post sends a body as it is.
func (c *caller) post(ctx context.Context, body string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+a2a.Path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	if c.v != "" {
		r.Header.Set("A2A-Version", c.v)
	}
	for name, value := range c.header {
		r.Header.Set(name, value)
	}
	res, err := c.client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return res
}

// rpcError is the error of an answer.
type rpcError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

// call calls a method. params is JSON.
func (c *caller) call(method, params string) (json.RawMessage, *rpcError) {
	c.t.Helper()
	res := c.post(c.t.Context(), fmt.Sprintf(`{"jsonrpc":"2.0","id":"x","method":%q,"params":%s}`, method, params))
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	var body struct {
		JSONRPC string
		ID      any
		Result  json.RawMessage
		Error   *rpcError
	}
	if err := json.Unmarshal(text, &body); err != nil || res.StatusCode != 200 || body.JSONRPC != "2.0" || body.ID != "x" || (body.Error == nil) == (body.Result == nil) {
		c.t.Fatalf("%s: %d %s %v", method, res.StatusCode, text, err)
	}
	return body.Result, body.Error
}

// ask calls a method that must succeed.
func (c *caller) ask(method, params string) json.RawMessage {
	c.t.Helper()
	result, e := c.call(method, params)
	if e != nil {
		c.t.Fatalf("%s %s: %+v %s", method, params, e, e.Data)
	}
	return result
}

// refused calls a method that must fail with a code.
func (c *caller) refused(code int, method, params string) *rpcError {
	c.t.Helper()
	result, e := c.call(method, params)
	if e == nil || e.Code != code {
		c.t.Errorf("%s %s: %s %+v, want %d", method, params, result, e, code)
		return &rpcError{}
	}
	return e
}

// task is a task in either version.
type task struct {
	ID        string
	ContextID string
	Status    struct {
		State, Timestamp string
		Message          *message
	}
	Artifacts []struct {
		ArtifactID string
		Parts      []part
	}
	History  []message
	Metadata map[string]json.RawMessage
}

type message struct {
	MessageID, Role, TaskID, ContextID string
	Parts                              []part
}

type part struct {
	Text *string
	Data json.RawMessage
	URL  string
	File struct{ URI, Name, MIMEType string }
}

// state is the state of a task in the words of 1.0.
func (t *task) state() string {
	return "TASK_STATE_" + strings.TrimPrefix(strings.ToUpper(strings.ReplaceAll(t.Status.State, "-", "_")), "TASK_STATE_")
}

// said is the text of an artifact.
func (t *task) said(id string) string {
	for _, a := range t.Artifacts {
		if a.ArtifactID == id {
			if a.Parts[0].Text != nil {
				return *a.Parts[0].Text
			}
			return string(a.Parts[0].Data)
		}
	}
	return ""
}

// read reads a task, wrapped or not.
func (c *caller) read(raw json.RawMessage) *task {
	c.t.Helper()
	var wrapped struct{ Task *task }
	if err := json.Unmarshal(raw, &wrapped); err != nil {
		c.t.Fatalf("%s: %v", raw, err)
	}
	if wrapped.Task != nil {
		return wrapped.Task
	}
	var bare task
	if err := json.Unmarshal(raw, &bare); err != nil || bare.ID == "" {
		c.t.Fatalf("%s: %v", raw, err)
	}
	return &bare
}

// names are the methods of a version.
func (c *caller) name(v10, v03 string) string {
	if c.v == "1.0" {
		return v10
	}
	return v03
}

var ids struct {
	sync.Mutex
	n int
}

// unique is an id that no message has had.
func unique() string {
	ids.Lock()
	defer ids.Unlock()
	ids.n++
	return fmt.Sprintf("m-%d", ids.n)
}

// params are those of a message. more are members of the message, as `"name":value`.
func (c *caller) params(id, parts string, conf string, more ...string) string {
	role := c.name("ROLE_USER", "user")
	members := append([]string{fmt.Sprintf(`"kind":"message","messageId":%q,"role":%q,"parts":%s`, id, role, parts)}, more...)
	if conf == "" {
		conf = "{}"
	}
	return fmt.Sprintf(`{"message":{%s},"configuration":%s}`, strings.Join(members, ","), conf)
}

// text is the parts of a message that is a text.
func text(s string) string {
	raw, _ := json.Marshal(s)
	return fmt.Sprintf(`[{"kind":"text","text":%s}]`, raw)
}

// data is the parts of a message that is an object.
func data(object string) string { return `[{"kind":"data","data":` + object + `}]` }

// at once is the configuration of who does not wait.
func (c *caller) atOnce() string { return c.name(`{"returnImmediately":true}`, `{"blocking":false}`) }

// say sends a command and waits for its task.
func (c *caller) say(command string, more ...string) *task {
	c.t.Helper()
	return c.read(c.ask(c.name("SendMessage", "message/send"), c.params(unique(), text(command), "", more...)))
}

func (c *caller) get(id string) *task {
	c.t.Helper()
	return c.read(c.ask(c.name("GetTask", "tasks/get"), fmt.Sprintf(`{"id":%q}`, id)))
}

// stream is an open stream.
type stream struct {
	*caller
	res    *http.Response
	reader *sse.Reader
	cancel context.CancelFunc
}

// frame is one frame.
type frame struct {
	id   string // the newest that the reader knows
	text string // result
	kind string // task, status or artifact
	task *task
	stat struct {
		TaskID, ContextID string
		Status            struct {
			State, Timestamp string
			Message          *message
		}
		Final    bool
		Metadata map[string]json.RawMessage
	}
	art struct {
		TaskID, ContextID string
		Artifact          struct {
			ArtifactID string
			Parts      []part
		}
		Append, LastChunk bool
	}
	err *rpcError
}

func (f *frame) state() string {
	return strings.TrimPrefix(strings.ToUpper(strings.ReplaceAll(f.stat.Status.State, "-", "_")), "TASK_STATE_")
}

// open calls a method that must answer with a stream.
func (c *caller) open(method, params string) *stream {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	res := c.post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params))
	c.t.Cleanup(func() { cancel(); res.Body.Close() })
	if ct := res.Header.Get("Content-Type"); ct != "text/event-stream; charset=utf-8" {
		body, _ := io.ReadAll(res.Body)
		c.t.Fatalf("%s %s: %s: %s", method, params, ct, body)
	}
	return &stream{c, res, sse.NewReader(res.Body), cancel}
}

// stream sends a command and opens its stream.
func (c *caller) stream(command string, more ...string) *stream {
	c.t.Helper()
	return c.open(c.name("SendStreamingMessage", "message/stream"), c.params(unique(), text(command), "", more...))
}

// resume comes back to a task. cursor "" is that of somebody new.
func (c *caller) resume(id, cursor string) *stream {
	c.t.Helper()
	if cursor != "" {
		c = c.with("Last-Event-ID", cursor)
	}
	return c.open(c.name("SubscribeToTask", "tasks/resubscribe"), fmt.Sprintf(`{"id":%q}`, id))
}

// next returns the next frame; ok is false at the end of the stream.
func (s *stream) next() (f frame, ok bool) {
	s.t.Helper()
	raw, err := s.reader.Next()
	if errors.Is(err, io.EOF) {
		return f, false
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if raw.Event != "message" {
		s.t.Fatalf("a frame has the name %s", raw.Event)
	}
	var body struct {
		JSONRPC string
		ID      int
		Result  json.RawMessage
		Error   *rpcError
	}
	if err := json.Unmarshal(raw.Data, &body); err != nil || body.JSONRPC != "2.0" || body.ID != 7 {
		s.t.Fatalf("%s: %v", raw.Data, err)
	}
	f = frame{id: raw.ID, text: string(body.Result), err: body.Error}
	if body.Error != nil {
		f.kind = "error"
		return f, true
	}
	var kinds struct {
		Kind                         string
		Task                         json.RawMessage
		StatusUpdate, ArtifactUpdate json.RawMessage
	}
	if err := json.Unmarshal(body.Result, &kinds); err != nil {
		s.t.Fatal(err)
	}
	whole := body.Result
	for _, raw := range []json.RawMessage{kinds.Task, kinds.StatusUpdate, kinds.ArtifactUpdate} {
		if raw != nil {
			whole = raw
		}
	}
	switch {
	case kinds.Task != nil || kinds.Kind == "task":
		f.kind, f.task = "task", &task{}
		err = json.Unmarshal(whole, f.task)
	case kinds.StatusUpdate != nil || kinds.Kind == "status-update":
		f.kind = "status"
		err = json.Unmarshal(whole, &f.stat)
	case kinds.ArtifactUpdate != nil || kinds.Kind == "artifact-update":
		f.kind = "artifact"
		err = json.Unmarshal(whole, &f.art)
	default:
		s.t.Fatalf("%s", body.Result)
	}
	if err != nil {
		s.t.Fatalf("%s: %v", whole, err)
	}
	return f, true
}

// until reads to the first status of a state.
func (s *stream) until(state string) []frame {
	s.t.Helper()
	var all []frame
	for {
		f, ok := s.next()
		if !ok {
			s.t.Fatalf("the stream ends without %s: %s", state, outline(all))
		}
		if all = append(all, f); f.kind == "status" && f.state() == state {
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

// outline is what frames are, adjacent pieces of an artifact as one.
func outline(frames []frame) string {
	var list []string
	for _, f := range frames {
		name := f.kind
		switch f.kind {
		case "task":
			name += ":" + strings.TrimPrefix(f.task.state(), "TASK_STATE_")
		case "status":
			name = f.state()
		case "artifact":
			name = f.art.Artifact.ArtifactID
		}
		if n := len(list); n == 0 || list[n-1] != name {
			list = append(list, name)
		}
	}
	return strings.Join(list, " ")
}

// heard puts the pieces of the answer together as a client does.
func heard(frames []frame) string {
	var text string
	for _, f := range frames {
		switch {
		case f.kind == "task":
			text = f.task.said("answer")
		case f.kind == "artifact" && f.art.Artifact.ArtifactID == "answer":
			if !f.art.Append {
				text = ""
			}
			text += *f.art.Artifact.Parts[0].Text
		}
	}
	return text
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
