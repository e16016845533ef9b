package manifest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/store/toolset"
)

// ToolServer is an MCP server. HTTP APIs are not in the file. The definitions of its tools are not in the file: to add a server is to
// accept those that it offers then.
type ToolServer struct {
	URL      string             `yaml:"url"`
	Headers  map[string]string  `yaml:"headers,omitempty"` // ${NAME} in a value stands for a secret
	Allow    []string           `yaml:"allow,omitempty"`   // the tools to take; nil: every tool
	Timeout  int                `yaml:"timeout_seconds,omitempty"`
	Disabled bool               `yaml:"disabled,omitempty"`
	Tools    map[string]OwnTool `yaml:"tools,omitempty"` // by their names on the server
}

// OwnTool describes a tool of a tool server. Tools that the file lacks have the zero value.
type OwnTool struct {
	Label    string `yaml:"label,omitempty"` // read_only or changes; "": changes
	Disabled bool   `yaml:"disabled,omitempty"`
}

const defaultTimeout = int(toolset.DefaultTimeout / time.Second)

// normalize removes what has its default value.
func (s ToolServer) normalize() ToolServer {
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
	for name, t := range s.Tools {
		if t.Label == string(toolset.Changes) {
			t.Label = ""
		}
		if t != (OwnTool{}) {
			tools[name] = t
		}
	}
	s.Tools = tools
	return s
}

func (f *File) readToolServers(ctx context.Context, a client.Admin) error {
	list, err := a.ToolServers(ctx)
	f.ToolServers = make(map[string]ToolServer)
	for _, entry := range list {
		if entry.Kind == string(toolset.HTTP) { // the file has no definitions of tools
			continue
		}
		s := ToolServer{URL: entry.URL, Headers: entry.Headers, Allow: entry.Allow, Timeout: entry.Timeout, Disabled: !entry.Enabled, Tools: make(map[string]OwnTool)}
		for _, t := range entry.Tools {
			s.Tools[t.OwnName] = OwnTool{t.Label, !t.Enabled}
		}
		f.ToolServers[entry.Name] = s
	}
	return err
}

// writeToolServer adds a server, or changes what can be changed: whether it and its tools are enabled,
// and the labels of these.
func (p *Plan) writeToolServer(ctx context.Context, a client.Admin, c Change) error {
	wanted, now := p.wanted.ToolServers[c.Name], p.present.ToolServers[c.Name]
	if c.Action == Create {
		in := client.NewToolServer{Name: c.Name, URL: wanted.URL, Headers: wanted.Headers, Allow: wanted.Allow, Timeout: wanted.Timeout}
		if _, err := a.AddToolServer(ctx, in); err != nil {
			return err
		}
		a = a.Since("") // the calls below change what this one has created
	} else if !wanted.isSameEntry(now) {
		return faultf("Of a tool server only tools and disabled change. For another url, headers, allow or timeout_seconds, "+
			"remove it first: parley tools remove %s", c.Name)
	}
	if wanted.Disabled != now.Disabled {
		if _, err := a.EnableToolServer(ctx, c.Name, !wanted.Disabled); err != nil {
			return err
		}
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(wanted.Tools)), maps.Keys(now.Tools))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		t := wanted.Tools[name]
		if t == now.Tools[name] {
			continue
		}
		label, enabled := t.Label, !t.Disabled
		if label == "" {
			label = string(toolset.Changes)
		}
		if _, err := a.UpdateOwnTool(ctx, c.Name, name, client.OwnToolChange{Label: &label, Enabled: &enabled}); err != nil {
			return err
		}
	}
	return nil
}

func (s ToolServer) isSameEntry(o ToolServer) bool {
	return s.URL == o.URL && s.Timeout == o.Timeout && maps.Equal(s.Headers, o.Headers) && slices.Equal(s.Allow, o.Allow)
}
