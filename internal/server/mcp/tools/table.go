// Package tools is the table of tools and their calls: it gives the SDK the tools of a key's
// scopes, parses the arguments of a call, and turns its result or its fault into content for a
// model.
package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.yaml.in/yaml/v3"

	"github.com/parley-server/parley/internal/store/apikey"
)

// tool is an entry of the table.
type tool struct {
	spec   *mcp.Tool
	scope  apikey.Scope
	fields []string // all names of its arguments
	handle Handler
}

// entry is a tool in the table.
type entry struct {
	Name, Title, Description string
	Scope                    apikey.Scope
	Annotations              map[string]any
	Input                    map[string]any
	Needs                    []string // required members of the input
	Output                   map[string]any
	Always                   []string // always in the output, except for faults
}

// loadTools parses the table and binds its tools to handlers. Its error lists all mistakes.
func loadTools(source []byte, handlers map[string]Handler) ([]tool, error) {
	var doc struct {
		Defs  map[string]any
		Tools []entry
	}
	if err := yaml.Unmarshal(source, &doc); err != nil {
		return nil, fmt.Errorf("read the table of tools: %w", err)
	}
	var list []tool
	var wrong []error
	bound := make(map[string]bool)
	for _, e := range doc.Tools {
		spec, err := e.spec(doc.Defs)
		t := tool{spec: spec, scope: e.Scope, fields: slices.Sorted(maps.Keys(e.Input)), handle: handlers[e.Name]}
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Errorf("%s: %w", e.Name, err))
		case t.handle == nil:
			wrong = append(wrong, fmt.Errorf("%s has no handler", e.Name))
		case bound[e.Name]:
			wrong = append(wrong, fmt.Errorf("%s is there twice", e.Name))
		case !e.Scope.Known():
			wrong = append(wrong, fmt.Errorf("%s: unknown scope %q", e.Name, e.Scope))
		case e.Title == "" || e.Description == "":
			wrong = append(wrong, fmt.Errorf("%s says nothing of itself", e.Name))
		}
		bound[e.Name] = true
		list = append(list, t)
	}
	for name := range handlers {
		if !bound[name] {
			wrong = append(wrong, fmt.Errorf("handler %q has no tool", name))
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, fmt.Errorf("the table of tools and the handlers differ: %w", err)
	}
	return list, nil
}

// spec returns the entry in the form for clients.
func (e entry) spec(defs map[string]any) (*mcp.Tool, error) {
	if e.Input == nil {
		e.Input = map[string]any{}
	}
	in := map[string]any{"type": "object", "properties": e.Input, "additionalProperties": false}
	if len(e.Needs) > 0 {
		in["required"] = e.Needs
	}
	e.Annotations["title"] = e.Title // revisions before 2025-06-18 read it here
	e.Output["fault"] = map[string]any{"$ref": "#/$defs/fault"}
	out := map[string]any{"type": "object", "properties": e.Output,
		"anyOf": []any{map[string]any{"required": e.Always}, map[string]any{"required": []string{"fault"}}}}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	used := make(map[string]any)
	for more := string(text); more != ""; { // definitions use other definitions
		found := more
		more = ""
		for name, def := range defs {
			if used[name] != nil || !strings.Contains(found, `"#/$defs/`+name+`"`) {
				continue
			}
			text, err := json.Marshal(def)
			if err != nil {
				return nil, err
			}
			used[name], more = def, more+string(text)
		}
	}
	out["$defs"] = used
	text, err = json.Marshal(map[string]any{
		"name": e.Name, "title": e.Title, "description": e.Description, "annotations": e.Annotations, "inputSchema": in, "outputSchema": out,
	})
	if err != nil {
		return nil, err
	}
	var spec mcp.Tool
	return &spec, json.Unmarshal(text, &spec)
}
