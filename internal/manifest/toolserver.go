package manifest

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/store/toolset"
)

// ToolServer is a tool server. The definitions of the tools of an MCP server are not in the file: to
// add one is to accept those that it offers then.
type ToolServer struct {
	Kind     string             `yaml:"kind,omitempty"` // http; "": mcp
	URL      string             `yaml:"url"`
	Headers  map[string]string  `yaml:"headers,omitempty"` // ${NAME} in a value stands for a secret
	Allow    []string           `yaml:"allow,omitempty"`   // the tools of an MCP server to take; nil: every tool
	Timeout  int                `yaml:"timeout_seconds,omitempty"`
	Auth     string             `yaml:"auth,omitempty"` // oauth; "": headers, or none
	AuthPer  string             `yaml:"auth_per,omitempty"`
	ClientID string             `yaml:"client_id,omitempty"`
	Secret   string             `yaml:"client_secret_name,omitempty"`
	Scopes   []string           `yaml:"scopes,omitempty"`
	Disabled bool               `yaml:"disabled,omitempty"`
	Tools    map[string]OwnTool `yaml:"tools,omitempty"` // by their names on the server

	there []string // the names of its tools, as far as it was read
}

// OwnTool describes a tool of a tool server. Tools of an MCP server that the file lacks have the zero
// value. Only those of an HTTP API have a definition.
type OwnTool struct {
	Label      string `yaml:"label,omitempty"` // read_only or changes; "": changes
	Disabled   bool   `yaml:"disabled,omitempty"`
	Definition `yaml:",inline"`
}

// The words for OAuth, and for one grant for the workspace.
const authOAuth, authWorkspace = "oauth", "workspace"

const defaultTimeout = int(toolset.DefaultTimeout / time.Second)

// normalize removes what has its default value, and completes the tools of an HTTP API.
func (s ToolServer) normalize(name string) ToolServer {
	if s.Kind == string(toolset.MCP) {
		s.Kind = ""
	}
	if s.Auth != authOAuth {
		s.Auth = ""
	} else if s.AuthPer == "" {
		s.AuthPer = authWorkspace
	}
	if s.Timeout == defaultTimeout {
		s.Timeout = 0
	}
	if len(s.Headers) == 0 {
		s.Headers = nil
	}
	if s.Allow != nil {
		s.Allow = slices.Compact(slices.Sorted(slices.Values(s.Allow)))
	}
	tools := make(map[string]OwnTool)
	for own, t := range s.Tools {
		if t.Label == string(toolset.Changes) {
			t.Label = ""
		}
		if s.isHTTP() {
			t.Definition = t.complete(name)
		} else if reflect.ValueOf(t).IsZero() {
			continue
		}
		tools[own] = t
	}
	s.Tools = tools
	return s
}

func (s ToolServer) isHTTP() bool { return s.Kind == string(toolset.HTTP) }

func (f *File) readToolServers(ctx context.Context, a client.Admin) error {
	list, err := a.ToolServers(ctx)
	f.ToolServers = make(map[string]ToolServer)
	for _, entry := range list {
		s := ToolServer{Kind: entry.Kind, URL: entry.URL, Headers: entry.Headers, Allow: entry.Allow, Timeout: entry.Timeout,
			Disabled: !entry.Enabled,
			Auth:     entry.Auth, AuthPer: entry.AuthPer, ClientID: entry.ClientID, Secret: entry.Secret, Scopes: entry.Scopes,
			Tools: make(map[string]OwnTool)}
		for _, t := range entry.Tools {
			s.there = append(s.there, t.OwnName)
			own := OwnTool{Label: t.Label, Disabled: !t.Enabled}
			if s.isHTTP() && t.Definition != nil {
				own.Definition = definitionOf(*t.Definition)
			}
			s.Tools[t.OwnName] = own
		}
		f.ToolServers[entry.Name] = s
	}
	return err
}

// writeToolServer adds a server, or changes what can be changed: whether it and its tools are enabled,
// the labels of these, and the tools of an HTTP API.
func (p *Plan) writeToolServer(ctx context.Context, a client.Admin, c Change) (err error) {
	wanted, now := p.wanted.ToolServers[c.Name], p.present.ToolServers[c.Name]
	switch {
	case c.Action == Create:
		in := client.NewToolServer{Name: c.Name, Kind: wanted.Kind, URL: wanted.URL, Headers: wanted.Headers, Allow: wanted.Allow,
			Timeout: wanted.Timeout,
			Auth:    wanted.Auth, AuthPer: wanted.AuthPer, ClientID: wanted.ClientID, Secret: wanted.Secret, Scopes: wanted.Scopes}
		if wanted.isHTTP() {
			if in.HTTPTools, err = wanted.httpTools(); err != nil {
				return err
			}
		}
		if _, err := a.AddToolServer(ctx, in); err != nil {
			return err
		}
		now.Tools = wanted.defined()
		a = a.Since("") // the calls below change what this one has written
	case !wanted.isSameEntry(now):
		return faultf("Of a tool server only tools and disabled change. To change the rest, "+
			"remove it first: parley tools remove %s", c.Name)
	case wanted.isHTTP() && !reflect.DeepEqual(wanted.defined(), now.defined()):
		tools, err := wanted.httpTools()
		if err != nil {
			return err
		}
		if _, err := a.ReplaceHTTPTools(ctx, c.Name, tools); err != nil {
			return err
		}
		now.Tools, a = now.after(wanted), a.Since("")
	}
	if wanted.Disabled != now.Disabled {
		if _, err := a.EnableToolServer(ctx, c.Name, !wanted.Disabled); err != nil {
			return err
		}
	}
	return writeOwnTools(ctx, a, c.Name, wanted.Tools, now.Tools)
}

// writeOwnTools sets labels, and enables and disables tools.
func writeOwnTools(ctx context.Context, a client.Admin, server string, wanted, now map[string]OwnTool) error {
	names := slices.AppendSeq(slices.Collect(maps.Keys(wanted)), maps.Keys(now))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		t, before := wanted[name], now[name]
		if t.Label == before.Label && t.Disabled == before.Disabled {
			continue
		}
		label, enabled := t.label(), !t.Disabled
		if _, err := a.UpdateOwnTool(ctx, server, name, client.OwnToolChange{Label: &label, Enabled: &enabled}); err != nil {
			return err
		}
	}
	return nil
}

func (t OwnTool) label() string {
	if t.Label == "" {
		return string(toolset.Changes)
	}
	return t.Label
}

func (s ToolServer) isSameEntry(o ToolServer) bool {
	return s.Auth == o.Auth && s.AuthPer == o.AuthPer && s.ClientID == o.ClientID && s.Secret == o.Secret && slices.Equal(s.Scopes,
		o.Scopes) &&
		s.Kind == o.Kind && s.URL == o.URL && s.Timeout == o.Timeout && maps.Equal(s.Headers, o.Headers) && slices.Equal(s.Allow, o.Allow)
}

// connected returns the entry without tools that it does not have yet: a server with OAuth lists them
// when it is connected.
func (s ToolServer) connected(present ToolServer) ToolServer {
	if s.Auth == authOAuth {
		s.Tools = maps.Clone(s.Tools)
		maps.DeleteFunc(s.Tools, func(name string, _ OwnTool) bool { return !slices.Contains(present.there, name) })
	}
	return s
}
