package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/callback"
	"github.com/parley-server/parley/internal/dbtest"
	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/filestore"
	"github.com/parley-server/parley/internal/httpapi"
	"github.com/parley-server/parley/internal/limit"
	"github.com/parley-server/parley/internal/mcpserver"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/guide"
	"github.com/parley-server/parley/internal/permission"
	"github.com/parley-server/parley/internal/runner"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/skill"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/attach"
	"github.com/parley-server/parley/internal/tool/knowledge"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/internal/vault"
	"github.com/parley-server/parley/internal/wiki"
	"github.com/parley-server/parley/internal/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is one running process on a database of its own, with both ways in.
type service struct {
	url       string
	transport *http.Transport
	pool      *pgxpool.Pool
	keys      *apikey.Store
	skills    *skill.Store
	wiki      *wiki.Store
	vault     *vault.Store
	workspace workspace.Workspace
	key       string // scope mcp
	gate      *gate
	protocol  http.Handler
	halt      context.CancelFunc // ends requests, as a process that stops does
}

// start runs a service. Tools that no rule knows ask for an approval.
func start(t testing.TB, change func(*mcpserver.Config)) *service {
	t.Helper()
	pool := dbtest.Pool(t, dbtest.DSN(t))
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	workspaces := workspace.New(pool)
	ws, err := workspaces.Create(t.Context(), "demo", "", "")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{pool: pool, keys: apikey.New(pool, log), skills: skill.New(pool), wiki: wiki.New(pool), workspace: ws,
		gate: &gate{make(chan struct{}, 100), make(chan struct{}, 100)}}
	s.key = s.issue(t, ws, apikey.MCP)
	ring, err := vault.ParseKeys(vault.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	s.vault = vault.New(pool, ring)
	if err := s.vault.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	guard, err := egress.New(egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	files := filestore.New(pool, ring, filestore.Options{})
	callbacks := callback.NewStore(pool, ring, guard)
	sessions := session.New(pool, session.Options{Log: log, Erase: []session.Eraser{files.Erase, callbacks.Erase}})
	guide := guide.New()
	turns, err := turn.New(turn.Config{
		Pool: pool, Sessions: sessions, Workspaces: workspaces, Skills: s.skills, Vault: s.vault, Files: files, Callbacks: callbacks,
		Permissions: permission.New(pool), Tools: func(*runner.Run) []tool.Tool {
			return append(knowledge.Tools(s.wiki, nil)[:2], s.gate, touch{}, attach.Tool(files, nil))
		}, Log: log, Workers: 20,
		Model: func(string) (model.Model, error) { return guide, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	limits := limit.New(pool, limit.Options{Limits: limit.Limits{Messages: 100_000, Calls: 100_000, Streams: 1000}, Node: sessions.Node(), Log: log})
	for _, f := range []func(context.Context) error{sessions.Run, turns.Run, s.keys.Run, limits.Run} {
		run(t, f)
	}
	cfg := mcpserver.Config{Config: door.Config{Sessions: sessions, Workspaces: workspaces, Keys: s.keys, Limits: limits, Log: log},
		Turns: turns, Files: files, Skills: s.skills, Wiki: s.wiki}
	if change != nil {
		change(&cfg)
	}
	protocol, err := mcpserver.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := httpapi.New(httpapi.Config{Config: cfg.Config, Turns: turns, Files: files, Callbacks: callbacks})
	if err != nil {
		t.Fatal(err)
	}
	s.protocol = protocol
	s.serve(t, protocol, rest)
	return s
}

func (s *service) serve(t testing.TB, protocol, rest http.Handler) {
	mux := http.NewServeMux()
	mux.Handle(mcpserver.Path, protocol)
	mux.Handle("/", rest)
	srv := httptest.NewUnstartedServer(mux)
	base, halt := context.WithCancel(context.Background())
	srv.Config.BaseContext = func(net.Listener) context.Context { return base }
	srv.Start()
	s.url, s.halt, s.transport = srv.URL, halt, &http.Transport{DisableCompression: true}
	t.Cleanup(func() {
		halt()
		s.transport.CloseIdleConnections()
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

// another makes a second workspace.
func (s *service) another(t testing.TB) workspace.Workspace {
	t.Helper()
	ws, err := workspace.New(s.pool).Create(t.Context(), "another", "", "")
	if err != nil {
		t.Fatal(err)
	}
	return ws
}

// bearer sends a key with every request.
type bearer struct {
	key  string
	next http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.key)
	return b.next.RoundTrip(r)
}

// client is a client of the official SDK.
type client struct {
	*mcp.ClientSession
	t       testing.TB
	outputs map[string]*jsonschema.Schema
}

// connect begins a session of the protocol. The newest revision is spoken unless opt says
// otherwise.
func (s *service) connect(t testing.TB, key string, opt *mcp.ClientOptions) *client {
	t.Helper()
	transport := &mcp.StreamableClientTransport{Endpoint: s.url + mcpserver.Path, HTTPClient: &http.Client{Transport: bearer{key, s.transport}}, MaxRetries: -1}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opt).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return &client{cs, t, make(map[string]*jsonschema.Schema)}
}

// names are the tools that the client sees.
func (c *client) names() string {
	c.t.Helper()
	var names []string
	for tool, err := range c.Tools(c.t.Context(), nil) {
		if err != nil {
			c.t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

// told is the structured content of a result, as far as tests look at it.
type told struct {
	failed bool
	text   string
	raw    json.RawMessage

	Success   bool
	Output    *string
	SessionID string `json:"session_id"`
	Error     *string
	Notice    string
	Input     *question       `json:"input_required"`
	Result    json.RawMessage `json:"structured_result"`
	Files     []file          `json:"attachments"`

	Fault *struct {
		Type, Code, Message, Param string
		RequiredScope              string `json:"required_scope"`
		RetryAfter                 int    `json:"retry_after"`
		Candidates                 []string
		Violations                 []struct{ Param, Rule, Message string }
		Turn                       *struct {
			TurnID    string `json:"turn_id"`
			EventsURL string `json:"events_url"`
		}
	}

	Status   string
	Title    string
	Already  bool `json:"already_decided"`
	Outcome  json.RawMessage
	Canceled bool
	Reason   string
	Page     string
	Version  int
	Content  string
	Hits     []struct{ Path, Page, Text string }
	Skills   []struct{ Name string }
	Data     []struct {
		SessionID  string `json:"session_id"`
		ApprovalID string `json:"approval_id"`
		Role       string
		Content    *string
		Status     string
		Request    *question
		Files      []file `json:"attachments"`
	}
	HasMore bool    `json:"has_more"`
	Next    *string `json:"next_cursor"`
}

type file struct {
	Filename string
	URL      string `json:"download_url"`
}

type question struct {
	Kind       string
	Plan       string
	Operations []struct{ Tool string }
	ApprovalID string `json:"approval_id"`
	DecideURL  string `json:"decide_url"`
	SecretURL  string `json:"secret_url"`
	KeyName    string `json:"key_name"`
}

// call calls a tool, and holds the result against the tool's own schema.
func (c *client) call(name string, arguments map[string]any) told {
	c.t.Helper()
	return c.tell(c.CallTool(c.t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments}))(name)
}

func (c *client) tell(res *mcp.CallToolResult, err error) func(name string) told {
	return func(name string) told {
		c.t.Helper()
		if err != nil {
			c.t.Fatalf("%s: %v", name, err)
		}
		raw, err := json.Marshal(res.StructuredContent)
		if err != nil {
			c.t.Fatal(err)
		}
		out := told{failed: res.IsError, raw: raw}
		for _, part := range res.Content {
			out.text += part.(*mcp.TextContent).Text
		}
		if err := json.Unmarshal(raw, &out); err != nil {
			c.t.Fatalf("%s: %s: %v", name, raw, err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			c.t.Fatal(err)
		}
		if err := c.schema(name).Validate(v); err != nil {
			c.t.Errorf("%s: %s does not fit its schema: %v", name, raw, err)
		}
		if out.text == "" {
			c.t.Errorf("%s says nothing in words", name)
		}
		return out
	}
}

// schema is the output schema of a tool, as the client of a key that may do everything sees
// it.
func (c *client) schema(name string) *jsonschema.Schema {
	c.t.Helper()
	if s := c.outputs[name]; s != nil {
		return s
	}
	for tool, err := range c.Tools(c.t.Context(), nil) {
		if err != nil {
			c.t.Fatal(err)
		}
		c.outputs[tool.Name] = compile(c.t, tool.OutputSchema)
	}
	if c.outputs[name] == nil {
		c.outputs[name] = compile(c.t, map[string]any{"type": "object", "required": []any{"fault"}}) // of a tool that the key does not see
	}
	return c.outputs[name]
}

func compile(t testing.TB, schema any) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", schema); err != nil {
		t.Fatal(err)
	}
	s, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// answer is a raw HTTP answer.
type answer struct {
	status int
	header http.Header
	body   string
}

// post sends a body to the protocol's address.
func (s *service) post(t testing.TB, key, body string, header ...string) answer {
	t.Helper()
	return s.do(t, http.MethodPost, mcpserver.Path, key, body, header...)
}

func (s *service) do(t testing.TB, method, path, key, body string, header ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(header); i += 2 {
		if r.Header.Del(header[i]); header[i] == "Host" {
			r.Host = header[i+1]
		} else if header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	res, err := s.transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(text)}
}
