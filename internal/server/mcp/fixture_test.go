package mcp_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/server"
	mcpserver "github.com/parley-server/parley/internal/server/mcp"
	"github.com/parley-server/parley/internal/server/rest"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/knowledge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a process with REST and MCP.
type service struct {
	*apitest.Service
	key      string // scope mcp
	protocol http.Handler
	checked  http.RoundTripper
}

// start runs a service. Tools without a rule need an approval.
func start(t testing.TB, change func(*server.Config)) *service {
	t.Helper()
	slow.Test(t, "runs a server",
		"TestEveryRevisionIsSpoken", "TestTheWikiIsReadSearchedAndSaved", "TestAnApprovalIsDecided")
	s := &service{Service: apitest.New(t, apitest.Options{
		Gate: "read", // so that no approval is needed
		Tools: func(s *apitest.Service) []tool.Tool {
			return append(knowledge.Tools(s.Wiki, nil)[:2], apitest.Touch{})
		},
		Turns: apitest.Asking,
	})}
	s.key = s.Issue(t, s.Workspace, apikey.MCP)
	srv := s.Server(t, change)
	protocol, err := mcpserver.New(srv, s.Wiki)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := rest.New(srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.protocol = srv.NewRouter(protocol)
	s.Serve(t, srv.NewRouter(protocol, rest))
	s.checked = s.Checked(t)
	return s
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

// connect starts an MCP session, in the newest revision unless opt selects another.
func (s *service) connect(t testing.TB, key string, opt *mcp.ClientOptions) *client {
	t.Helper()
	transport := &mcp.StreamableClientTransport{Endpoint: s.URL + mcpserver.Path,
		HTTPClient: &http.Client{Transport: bearer{key, s.checked}}, MaxRetries: -1}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opt).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return &client{cs, t, make(map[string]*jsonschema.Schema)}
}

// names returns the tools that the client lists.
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

// told holds the fields of structured content that tests check.
type told struct {
	failed bool
	parts  []string
	text   string // text of all parts
	raw    json.RawMessage

	Success   bool
	Output    *string
	SessionID string `json:"session_id"`
	Error     *string
	Notice    string
	Replayed  bool
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
	Path     string
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

// call calls a tool, and validates the result against the tool's own schema.
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
			out.parts = append(out.parts, part.(*mcp.TextContent).Text)
		}
		out.text = strings.Join(out.parts, "\n\n")
		if err := json.Unmarshal(raw, &out); err != nil {
			c.t.Fatalf("%s: %s: %v", name, raw, err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			c.t.Fatal(err)
		}
		if err := c.schema(name).Validate(v); err != nil {
			c.t.Errorf("%s: %s is not valid in its schema: %v", name, raw, err)
		}
		if out.text == "" {
			c.t.Errorf("%s has no text content", name)
		}
		return out
	}
}

// schema returns the output schema of a tool, as a key with all scopes lists it.
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
		c.outputs[name] = compile(c.t, map[string]any{"type": "object", "required": []any{"fault"}}) // for a tool that the key cannot list
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

// answer is a raw HTTP response.
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
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
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
	res, err := s.checked.RoundTrip(r)
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
