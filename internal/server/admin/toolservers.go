package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/toolset"
)

// toolServerView is an entry with its tools. It names secrets, and has no value of one.
type toolServerView struct {
	Name        string            `json:"name"`
	Kind        toolset.Kind      `json:"kind"`
	URL         string            `json:"url"`
	Headers     map[string]string `json:"headers"`
	Allow       []string          `json:"allow"` // null: every tool
	Timeout     int               `json:"timeout_seconds"`
	Auth        string            `json:"auth"`
	AuthPer     string            `json:"auth_per,omitempty"`
	ClientID    string            `json:"client_id,omitempty"`
	Secret      string            `json:"client_secret_name,omitempty"`
	Scopes      []string          `json:"scopes,omitempty"`
	Enabled     bool              `json:"enabled"`
	RefreshedAt *time.Time        `json:"refreshed_at"`
	LastUsedAt  *time.Time        `json:"last_used_at"`
	LastError   *string           `json:"last_error"`
	LastErrorAt *time.Time        `json:"last_error_at"`
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
	Tools       []ownToolView     `json:"tools"`
	Skipped     []toolset.Skipped `json:"skipped,omitempty"`
}

// ownToolView is a tool of an entry, with the definition that waits for acceptance.
type ownToolView struct {
	Name       string              `json:"name"`
	OwnName    string              `json:"own_name"`
	State      toolset.State       `json:"state"`
	Label      toolset.Label       `json:"label"`
	Enabled    bool                `json:"enabled"`
	Repeatable bool                `json:"repeatable"`
	Definition *toolset.Definition `json:"definition"`
	Offered    *toolset.Definition `json:"offered"`
	Hash       *string             `json:"offered_hash"`
}

func viewToolServer(s toolset.Server, skipped []toolset.Skipped) toolServerView {
	v := toolServerView{Name: s.Name, Kind: s.Kind, URL: s.URL, Headers: s.Headers, Allow: s.Allowed,
		Timeout: int(s.Timeout / time.Second), Enabled: s.Enabled,
		RefreshedAt: s.RefreshedAt, LastUsedAt: s.LastUsedAt, LastErrorAt: s.LastErrorAt, CreatedAt: s.CreatedAt.UTC(),
		UpdatedAt: s.UpdatedAt.UTC(),
		Tools:     make([]ownToolView, len(s.Tools)), Skipped: skipped}
	if v.Auth, v.AuthPer = s.Auth.Words(); !s.Auth.OAuth {
		v.AuthPer = ""
	}
	v.ClientID, v.Secret, v.Scopes = s.Auth.ClientID, s.Auth.ClientSecret, s.Auth.Scopes
	if s.LastError != "" {
		v.LastError = &s.LastError
	}
	for i, t := range s.Tools {
		v.Tools[i] = ownToolView{Name: t.Name, OwnName: t.OwnName, State: t.State(), Label: t.Label, Enabled: t.Enabled,
			Repeatable: t.IsRepeatable(),
			Definition: t.Definition, Offered: t.Offered}
		if t.OfferedHash != "" {
			v.Tools[i].Hash = &t.OfferedHash
		}
	}
	return v
}

func (s *api) listToolServers(ctx context.Context, c *call) (any, error) {
	list, err := s.Toolset.List(ctx, c.Caller.Workspace.ID)
	if err != nil {
		return nil, err
	}
	views := make([]toolServerView, len(list))
	for i, server := range list {
		views[i] = viewToolServer(server, nil)
	}
	return paged(c, views, func(v toolServerView) string { return v.Name })
}

func (s *api) getToolServer(ctx context.Context, c *call) (any, error) {
	server, err := s.Toolset.Find(ctx, c.Caller.Workspace.ID, c.PathValue("toolServer"))
	return viewToolServer(server, nil), err
}

// askToolServer reads a new entry, and connects to its server to learn its tools. Those of an HTTP
// API are in the body.
func (s *api) askToolServer(ctx context.Context, c *call) (err error) {
	kind := toolset.Kind(cmp.Or(c.body.Enum("kind", string(toolset.MCP), string(toolset.HTTP)), string(toolset.MCP)))
	e := toolset.Entry{Name: c.body.RequiredString("name", toolset.MaxServerName), Kind: kind}
	if c.body.Has("headers") && json.Unmarshal(c.body.Raw("headers"), &e.Headers) != nil {
		c.Add(fault.Violation{Param: "/headers", Rule: "type", Message: "headers is an object of texts."})
	}
	e.Timeout = time.Duration(c.body.Int("timeout_seconds", int(toolset.DefaultTimeout/time.Second), 1,
		int(toolset.MaxTimeout/time.Second))) * time.Second
	c.rejectOtherKind(kind)
	if kind == toolset.HTTP {
		return c.readHTTPAPI(e)
	}
	e.URL = c.body.RequiredString("url", 2048)
	if c.body.Has("allow") {
		e.Allowed = append([]string{}, c.body.Strings("allow", toolset.MaxTools)...)
	}
	e.Auth = c.toolAuth()
	if err := c.Err(); err != nil {
		return err
	}
	c.offered, err = s.askNewServer(ctx, c.Caller.Workspace.ID, e)
	return err
}

func (s *api) addToolServer(ctx context.Context, c *call) (any, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ConnectTime)
	defer cancel()
	if c.offered == nil {
		if err := s.askToolServer(ctx, c); err != nil {
			return nil, err
		}
	}
	if c.offered.entry.Kind == toolset.HTTP {
		server, err := s.Toolset.AddHTTP(ctx, c.Caller.Workspace.ID, c.offered.entry, c.offered.http)
		return viewToolServer(server, nil), c.httpError(err)
	}
	server, skipped, err := s.Toolset.Add(ctx, c.Caller.Workspace.ID, c.offered.entry, c.offered.protocol, c.offered.tools)
	return viewToolServer(server, skipped), err
}

func (s *api) refreshToolServer(ctx context.Context, c *call) (any, error) {
	server, skipped, err := s.RefreshToolServer(ctx, c.Caller.Workspace.ID, c.PathValue("toolServer"))
	return viewToolServer(server, skipped), err
}

func (s *api) updateToolServer(ctx context.Context, c *call) (any, error) {
	c.body.Require("enabled")
	enabled := c.body.Bool("enabled")
	if err := c.Err(); err != nil {
		return nil, err
	}
	if err := s.Toolset.Enable(ctx, c.Caller.Workspace.ID, c.PathValue("toolServer"), enabled); err != nil {
		return nil, err
	}
	return s.getToolServer(ctx, c)
}

func (s *api) deleteToolServer(ctx context.Context, c *call) (any, error) {
	name := c.PathValue("toolServer")
	return deleted{name, true}, s.Toolset.Remove(ctx, c.Caller.Workspace.ID, name)
}

func (s *api) updateOwnTool(ctx context.Context, c *call) (any, error) {
	c.notNull("label", "enabled")
	var label *toolset.Label
	if c.body.Has("label") {
		label = new(toolset.Label(c.body.Enum("label", string(toolset.ReadOnly), string(toolset.Changes))))
	}
	enabled := c.optionalBool("enabled")
	if err := c.Err(); err != nil {
		return nil, err
	}
	server, err := s.Toolset.SetTool(ctx, c.Caller.Workspace.ID, c.PathValue("toolServer"), c.PathValue("tool"), label, enabled)
	return viewToolServer(server, nil), err
}

func (s *api) acceptOwnTool(ctx context.Context, c *call) (any, error) {
	hash := c.body.RequiredString("hash", 64)
	if err := c.Err(); err != nil {
		return nil, err
	}
	server, err := s.Toolset.Accept(ctx, c.Caller.Workspace.ID, c.PathValue("toolServer"), c.PathValue("tool"), hash)
	return viewToolServer(server, nil), err
}

// toolTest is the result of a test call.
type toolTest struct {
	OK     bool   `json:"ok"`
	Output string `json:"output"`
}

// testOwnTool calls a tool that is usable, without an approval.
func (s *api) testOwnTool(ctx context.Context, c *call) (any, error) {
	c.body.Require("input")
	input := json.RawMessage(c.body.Raw("input"))
	if err := c.Err(); err != nil {
		return nil, err
	}
	res, err := s.TestTool(ctx, c.Caller.Workspace.ID, c.PathValue("toolServer"), c.PathValue("tool"), input)
	return toolTest{res.OK, res.Output}, err
}
