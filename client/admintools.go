package client

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// ToolServer is an entry of the workspace with the tools that it adds.
type ToolServer struct {
	Name        string            `json:"name"`
	Kind        string            `json:"kind"` // mcp or http
	URL         string            `json:"url"`
	Headers     map[string]string `json:"headers"`         // ${NAME} in a value stands for a secret
	Allow       []string          `json:"allow"`           // the server's names of the tools to take; nil: every tool
	Timeout     int               `json:"timeout_seconds"` // of a call
	Auth        string            `json:"auth"`            // none or oauth
	AuthPer     string            `json:"auth_per,omitempty"`
	ClientID    string            `json:"client_id,omitempty"`
	Secret      string            `json:"client_secret_name,omitempty"`
	Scopes      []string          `json:"scopes,omitempty"`
	Enabled     bool              `json:"enabled"`
	RefreshedAt *time.Time        `json:"refreshed_at"`
	LastUsedAt  *time.Time        `json:"last_used_at"`
	LastError   *string           `json:"last_error"` // nil: the last use or refresh succeeded
	LastErrorAt *time.Time        `json:"last_error_at"`
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
	Tools       []OwnTool         `json:"tools"`
	Skipped     []SkippedTool     `json:"skipped,omitempty"` // after AddToolServer and RefreshToolServer
}

// OwnTool is a tool of a tool server.
type OwnTool struct {
	Name        string          `json:"name"`     // as the model sees it
	OwnName     string          `json:"own_name"` // as the server calls it
	State       string          `json:"state"`    // usable, new, changed, missing or disabled
	Label       string          `json:"label"`    // read_only or changes
	Enabled     bool            `json:"enabled"`
	Repeatable  bool            `json:"repeatable"`   // a call of unknown outcome may be made again
	Definition  *ToolDefinition `json:"definition"`   // accepted; nil: never
	Offered     *ToolDefinition `json:"offered"`      // the server's present one, if it waits for acceptance
	OfferedHash *string         `json:"offered_hash"` // of Offered
}

// ToolDefinition describes a tool to the model. Annotations are hints of the server.
type ToolDefinition struct {
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Annotations json.RawMessage `json:"annotations"`
	HTTP        *HTTPRequest    `json:"http,omitempty"` // of a tool of an HTTP API
}

// HTTPRequest is how a call of a tool becomes a request to an HTTP API.
type HTTPRequest struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`                      // added to the address of the entry: /customers/{id}
	In      map[string]string `json:"in,omitempty"`              // place of members of the input: path, query, body or whole_body
	Timeout int               `json:"timeout_seconds,omitempty"` // 0: that of the entry
	Later   *bool             `json:"later,omitempty"`           // 202 announces a result that will be posted; nil: except for GET
}

// HTTPTool is a tool of an HTTP API to add.
type HTTPTool struct {
	Name        string          `json:"name,omitempty"` // "": models see the name of the entry
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"` // nil: no input
	Label       string          `json:"label,omitempty"`        // read_only or changes; "" keeps the label
	Idempotent  bool            `json:"idempotent,omitempty"`   // a call of unknown outcome may be made again
	HTTP        HTTPRequest     `json:"http"`
}

// HTTPTools are the tools of an HTTP API: Tools, or the operations of an OpenAPI document.
type HTTPTools struct {
	Tools      []HTTPTool `json:"tools,omitempty"`
	OpenAPI    string     `json:"openapi,omitempty"` // YAML or JSON
	Operations []string   `json:"operations,omitempty"`
}

// SkippedTool is a tool of a server that the workspace cannot use.
type SkippedTool struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// NewToolServer is a tool server to add.
type NewToolServer struct {
	Name      string            `json:"name"`
	Kind      string            `json:"kind,omitempty"` // "" is mcp
	URL       string            `json:"url,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`         // ${NAME} in a value stands for a secret
	Allow     []string          `json:"allow,omitempty"`           // of an MCP server; nil: every tool
	Timeout   int               `json:"timeout_seconds,omitempty"` // of a call; 0: the server's default
	HTTPTools                   // of an HTTP API

	Auth     string   `json:"auth,omitempty"`               // oauth: the tools are listed after ConnectToolServer
	AuthPer  string   `json:"auth_per,omitempty"`           // workspace or caller: who has a grant of its own
	ClientID string   `json:"client_id,omitempty"`          // at the authorization server; "": Parley registers there
	Secret   string   `json:"client_secret_name,omitempty"` // secret with the secret of the client
	Scopes   []string `json:"scopes,omitempty"`             // to ask for; nil: those that the server names
}

// ConnectLink is a link with which a browser connects a tool server. It works once.
type ConnectLink struct {
	Server    string    `json:"server"`
	URL       string    `json:"connect_url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Connection is what a tool server has granted to a holder, without the tokens.
type Connection struct {
	ID        string     `json:"connection_id"`
	Per       string     `json:"per"`    // workspace, user, caller or key
	Holder    string     `json:"holder"` // the user, the caller_id or the id of the key; "": the workspace
	Issuer    string     `json:"issuer"`
	Scopes    []string   `json:"scopes"`
	ExpiresAt *time.Time `json:"expires_at"` // of the access token; nil: unknown
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
}

// OwnToolChange changes a tool of a tool server. A nil field stays unchanged.
type OwnToolChange struct {
	Label   *string `json:"label,omitempty"` // read_only or changes
	Enabled *bool   `json:"enabled,omitempty"`
}

// ToolTest is the result of a test call. If OK is false, Output is the reason.
type ToolTest struct {
	OK     bool   `json:"ok"`
	Output string `json:"output"`
}

// ToolServers lists the tool servers of the workspace with their tools.
func (a Admin) ToolServers(ctx context.Context) ([]ToolServer, error) {
	return listAll[ToolServer](ctx, a, a.workspace(http.MethodGet, nil, "tool-servers"))
}

// ToolServer returns a tool server with its tools.
func (a Admin) ToolServer(ctx context.Context, name string) (ToolServer, error) {
	return administer[ToolServer](ctx, a, a.workspace(http.MethodGet, nil, "tool-servers", name))
}

// AddToolServer adds a tool server. It connects to an MCP server and accepts the definitions of its
// tools, which have the label changes.
func (a Admin) AddToolServer(ctx context.Context, s NewToolServer) (ToolServer, error) {
	return administer[ToolServer](ctx, a, a.workspace(http.MethodPost, s, "tool-servers"))
}

// ReplaceHTTPTools replaces the tools of an HTTP API.
func (a Admin) ReplaceHTTPTools(ctx context.Context, name string, tools HTTPTools) (ToolServer, error) {
	return administer[ToolServer](ctx, a, a.workspace(http.MethodPut, tools, "tool-servers", name, "tools"))
}

// EnableToolServer enables or disables a tool server with all its tools.
func (a Admin) EnableToolServer(ctx context.Context, name string, enabled bool) (ToolServer, error) {
	return administer[ToolServer](ctx, a, a.workspace(http.MethodPatch, object{"enabled": enabled}, "tool-servers", name))
}

// DeleteToolServer removes a tool server with its tools and their rules.
func (a Admin) DeleteToolServer(ctx context.Context, name string) error {
	_, err := administer[object](ctx, a, a.workspace(http.MethodDelete, nil, "tool-servers", name))
	return err
}

// RefreshToolServer compares the tools that a server offers with the accepted ones. New and changed
// definitions wait for AcceptOwnTool.
func (a Admin) RefreshToolServer(ctx context.Context, name string) (ToolServer, error) {
	return administer[ToolServer](ctx, a, a.workspace(http.MethodPost, nil, "tool-servers", name, "refresh"))
}

// ConnectToolServer makes a link for a tool server with OAuth. When a browser has used it, the server
// is connected and its tools are listed, the first time accepted. scopes are asked for besides those of
// the entry.
func (a Admin) ConnectToolServer(ctx context.Context, name string, scopes ...string) (ConnectLink, error) {
	call := a.workspace(http.MethodPost, nil, "tool-servers", name, "connect")
	return administer[ConnectLink](ctx, a, call.with("scope", strings.Join(scopes, " ")))
}

// Connections lists the grants of a tool server.
func (a Admin) Connections(ctx context.Context, name string) ([]Connection, error) {
	return listAll[Connection](ctx, a, a.workspace(http.MethodGet, nil, "tool-servers", name, "connections"))
}

// DeleteConnection forgets a grant of a tool server.
func (a Admin) DeleteConnection(ctx context.Context, name, id string) error {
	_, err := administer[object](ctx, a, a.workspace(http.MethodDelete, nil, "tool-servers", name, "connections", id))
	return err
}

// UpdateOwnTool labels, enables or disables a tool, which is named as the server or as the model sees
// it.
func (a Admin) UpdateOwnTool(ctx context.Context, server, tool string, change OwnToolChange) (ToolServer, error) {
	return administer[ToolServer](ctx, a, a.workspace(http.MethodPatch, change, "tool-servers", server, "tools", tool))
}

// AcceptOwnTool accepts the offered definition of a tool. hash is the OfferedHash that was read: if the
// server has offered another definition since, it fails with PRECONDITION_FAILED.
func (a Admin) AcceptOwnTool(ctx context.Context, server, tool, hash string) (ToolServer, error) {
	return administer[ToolServer](ctx, a, a.workspace(http.MethodPost, object{"hash": hash}, "tool-servers", server, "tools", tool, "accept"))
}

// TestOwnTool calls a usable tool with an input, without an approval.
func (a Admin) TestOwnTool(ctx context.Context, server, tool string, input json.RawMessage) (ToolTest, error) {
	return administer[ToolTest](ctx, a, a.workspace(http.MethodPost, object{"input": input}, "tool-servers", server, "tools", tool, "test"))
}
