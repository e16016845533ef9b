package manifest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/store/toolset"
)

// Definition describes a tool of an HTTP API.
type Definition struct {
	Title       string         `yaml:"title,omitempty"`
	Description string         `yaml:"description,omitempty"`
	InputSchema map[string]any `yaml:"input_schema,omitempty"`
	Idempotent  bool           `yaml:"idempotent,omitempty"` // a call of unknown outcome may be made again
	HTTP        *HTTPRequest   `yaml:"http,omitempty"`
}

// HTTPRequest is how a call becomes a request.
type HTTPRequest struct {
	Method  string            `yaml:"method"`
	Path    string            `yaml:"path"`                      // added to the url of the entry: /customers/{id}
	In      map[string]string `yaml:"in,omitempty"`              // place of members of the input: path, query, body or whole_body
	Timeout int               `yaml:"timeout_seconds,omitempty"` // 0: that of the entry
	Later   *bool             `yaml:"later,omitempty"`           // 202 announces a result that will be posted; nil: except for GET
}

// complete returns the definition as the server stores it.
func (d Definition) complete(entry string) Definition {
	if d.HTTP == nil {
		return d // the server rejects it
	}
	raw, err := json.Marshal(d.InputSchema)
	if err != nil {
		return d
	}
	if d.InputSchema == nil {
		raw = nil
	}
	in := toolset.HTTPTool{Definition: toolset.Definition{Title: d.Title, Description: d.Description, Schema: raw}}
	in.HTTP = &toolset.Request{Method: d.HTTP.Method, Path: d.HTTP.Path, In: make(map[string]toolset.Place), Timeout: d.HTTP.Timeout,
		Later: d.HTTP.isLater()}
	for name, place := range d.HTTP.In {
		in.HTTP.In[name] = toolset.Place(place)
	}
	stored := toolset.CompleteHTTPTool(entry, in)
	places := make(map[string]string)
	for name, place := range stored.HTTP.In {
		places[name] = string(place)
	}
	later := stored.HTTP.Later
	return definitionOf(client.ToolDefinition{Title: stored.Title, Description: stored.Description, InputSchema: stored.Schema,
		HTTP: &client.HTTPRequest{Method: stored.HTTP.Method, Path: stored.HTTP.Path, In: places, Timeout: stored.HTTP.Timeout,
			Later: &later}}).idempotent(d.Idempotent)
}

func (d Definition) idempotent(yes bool) Definition {
	d.Idempotent = yes
	return d
}

func (r HTTPRequest) isLater() bool {
	if r.Later != nil {
		return *r.Later
	}
	return !strings.EqualFold(r.Method, http.MethodGet)
}

// definitionOf converts a stored definition.
func definitionOf(d client.ToolDefinition) Definition {
	out := Definition{Title: d.Title, Description: d.Description}
	var hints struct {
		Idempotent bool `json:"idempotent_hint"`
	}
	if len(d.Annotations) > 0 && json.Unmarshal(d.Annotations, &hints) == nil {
		out.Idempotent = hints.Idempotent
	}
	if json.Unmarshal(d.InputSchema, &out.InputSchema) != nil {
		out.InputSchema = nil
	}
	if r := d.HTTP; r != nil {
		out.HTTP = &HTTPRequest{Method: r.Method, Path: r.Path, In: r.In, Timeout: r.Timeout, Later: r.Later}
		if len(r.In) == 0 {
			out.HTTP.In = nil
		}
		if usual := !strings.EqualFold(r.Method, http.MethodGet); r.Later != nil && *r.Later == usual {
			out.HTTP.Later = nil
		}
	}
	return out
}

// httpTools returns the tools for the API, by name.
func (s ToolServer) httpTools() (out client.HTTPTools, err error) {
	for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
		t := s.Tools[name]
		in := client.HTTPTool{Name: name, Title: t.Title, Description: t.Description, Label: t.label(), Idempotent: t.Idempotent}
		if t.InputSchema != nil {
			if in.InputSchema, err = json.Marshal(t.InputSchema); err != nil {
				return out, faultf("The input_schema of the tool %s is not JSON: the names of its members are not all texts.", name)
			}
		}
		if r := t.HTTP; r != nil {
			in.HTTP = client.HTTPRequest{Method: r.Method, Path: r.Path, In: r.In, Timeout: r.Timeout, Later: r.Later}
		}
		out.Tools = append(out.Tools, in)
	}
	return out, nil
}

// defined returns the tools of an HTTP API as they are after their definitions were written: none is
// disabled.
func (s ToolServer) defined() map[string]OwnTool {
	if !s.isHTTP() {
		return nil
	}
	tools := maps.Clone(s.Tools)
	for name, t := range tools {
		t.Disabled = false
		tools[name] = t
	}
	return tools
}

// after returns the tools of an HTTP API after those of another one replaced them: a tool that stays is
// disabled as before.
func (s ToolServer) after(o ToolServer) map[string]OwnTool {
	tools := o.defined()
	for name, t := range tools {
		t.Disabled = s.Tools[name].Disabled
		tools[name] = t
	}
	return tools
}
