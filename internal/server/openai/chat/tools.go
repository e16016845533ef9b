package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/strictjson"
	"github.com/parley-server/parley/internal/turn"
)

// function is a tool of the client. Completions nest it, responses do not.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// toolChoice is which of the client's tools the model may or must call.
type toolChoice struct {
	mode  string   // auto, none or required
	names []string // of the tools to choose from; nil: all
	named bool     // the client has named one tool
}

// parseTools parses the client's own tools, and what it wants of them. One tool that has to be
// called is a structured answer: such clients read its input and post no result.
func (in *Incoming) parseTools(r *server.Request) (tools []turn.CallerTool, o turn.Options) {
	choice := in.parseToolChoice()
	if raw, ok := in.Given["tools"]; ok {
		tools = in.CallerTools("/tools", in.convertTools(raw))
	}
	if raw, ok := in.Given["parallel_tool_calls"]; ok {
		o.OneCall = !in.Boolean("/parallel_tool_calls", raw)
	}
	if choice.names != nil {
		tools = slices.DeleteFunc(tools, func(t turn.CallerTool) bool { return !slices.Contains(choice.names, t.Name) })
	}
	if choice.mode == "none" {
		return nil, turn.Options{}
	}
	o.EndUnanswered = len(tools) > 0
	if choice.mode != "required" {
		return tools, o
	}
	switch len(tools) {
	case 0:
		in.Add(fault.Violation{Param: "/tool_choice", Rule: "enum",
			Message: "tool_choice requires a call of a function that tools does not define."})
		return nil, o
	case 1:
		if _, ok := in.Given["response_format"]; ok {
			in.Ignored = append(in.Ignored, "response_format")
		}
		t := tools[0]
		in.Given["response_schema"], r.Names["response_schema"] = schemaOf(t.Schema), "tools"
		return nil, turn.Options{Forced: &turn.ForcedTool{Name: t.Name, Description: t.Description, Required: !choice.named}}
	}
	o.ToolChoice = turn.ToolsRequired
	return tools, o
}

// convertTools converts functions to the tools of a message. Tools of other types are OpenAI's own.
func (in *Incoming) convertTools(raw json.RawMessage) json.RawMessage {
	converted := []map[string]any{}
	for i, item := range in.Array("/tools", raw, request.MaxTools) {
		var t struct {
			Type     string    `json:"type"`
			Function *function `json:"function"`
			function
		}
		if strictjson.Unmarshal(item, &t) != nil || t.Type != "function" {
			in.Ignored = append(in.Ignored, fmt.Sprintf("tools/%d", i))
			continue
		}
		f := t.function
		if t.Function != nil {
			f = *t.Function
		}
		tool := map[string]any{"name": f.Name, "input_schema": schemaOf(f.Parameters)}
		if strings.TrimSpace(f.Description) != "" {
			tool["description"] = f.Description
		}
		converted = append(converted, tool)
	}
	out, _ := json.Marshal(converted) // of strings and JSON
	return out
}

// schemaOf returns the schema of an input, which is an object even if the client does not say so.
func schemaOf(raw json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if json.Unmarshal(raw, &members) != nil || members["type"] != nil {
		return raw
	}
	members["type"] = json.RawMessage(`"object"`)
	out, _ := json.Marshal(members)
	return out
}

// parseToolChoice parses tool_choice. The older function_call has no meaning here, unless it forces
// a call.
func (in *Incoming) parseToolChoice() (c toolChoice) {
	c.mode = "auto"
	if raw, ok := in.Given["function_call"]; ok && raw[0] == '{' {
		in.Add(fault.Violation{Param: "/function_call", Rule: "enum", Message: "function_call is not supported. Send tools and tool_choice."})
	}
	raw, ok := in.Given["tool_choice"]
	switch {
	case !ok:
		return c
	case raw[0] == '"':
		c.mode = in.OneOf("/tool_choice", raw, "auto", "none", "required")
		return c
	case raw[0] != '{':
		in.Add(fault.Violation{Param: "/tool_choice", Rule: "type", Expected: "string", Message: "tool_choice must be a string or an object."})
		return c
	}
	type named struct{ Name string }
	type list struct {
		Mode  string
		Tools []struct {
			named
			Function named
		}
	}
	var given struct {
		Type string
		named
		Function named
		list
		Allowed list `json:"allowed_tools"` // completions nest it
	}
	_ = json.Unmarshal(raw, &given)
	switch given.Type {
	case "allowed_tools":
		allowed := given.list
		if allowed.Mode == "" {
			allowed = given.Allowed
		}
		c.mode, c.names = in.Choice("/tool_choice/mode", allowed.Mode, "auto", "required"), []string{}
		for _, t := range allowed.Tools {
			c.names = append(c.names, t.Name, t.Function.Name)
		}
	case "function":
		c.mode, c.named, c.names = "required", true, []string{given.Name + given.Function.Name}
	default:
		in.Add(fault.Violation{Param: "/tool_choice", Rule: "enum", Message: "tool_choice must be auto, none, required, or name a function."})
	}
	return c
}
