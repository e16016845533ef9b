package request

import (
	"encoding/json"
	"strconv"

	"github.com/parley-server/parley/internal/turn"
)

// ClientTools parses the tools that a chat client defines in its own dialect: a list of tools with a
// name, or an object that has each tool under its name. schema names the members that may hold the
// schema of the input. Other members have no effect.
func (c *Checks) ClientTools(param string, raw json.RawMessage, schema ...string) (tools []turn.CallerTool) {
	if len(raw) > MaxToolDefinitions {
		c.Longer(param, "bytes", MaxToolDefinitions)
		return nil
	}
	add := func(at string, item json.RawMessage, t turn.CallerTool) {
		if !c.Object(at, item) {
			return
		}
		given := ByName(Members(item))
		if t.Name == "" {
			t.Name = c.toolName(at+"/name", OrEmptyText(given["name"]))
		}
		if text, ok := given["description"]; ok && string(text) != `""` {
			t.Description = c.Word(at+"/description", text, MaxToolDescription)
		}
		for _, name := range schema {
			if object, ok := given[name]; ok {
				t.Schema = c.smallObject(at+"/"+name, object, MaxSchema)
			}
		}
		tools = append(tools, t)
	}
	if len(raw) == 0 || raw[0] != '{' {
		for i, item := range c.Array(param, raw, MaxTools) {
			add(param+"/"+strconv.Itoa(i), item, turn.CallerTool{})
		}
		return tools
	}
	members := Members(raw)
	if len(members) > MaxTools {
		c.addViolation(param, "max_items", param[1:]+" has more than "+strconv.Itoa(MaxTools)+" tools.", MaxTools)
		return nil
	}
	for _, m := range members {
		at := param + "/" + m.Name
		add(at, m.Value, turn.CallerTool{Name: c.toolName(at, QuoteText(m.Name))})
	}
	return tools
}

// ClientResult returns the result of a call as a chat client sends it: any value, or the reason of
// a failure.
func (c *Checks) ClientResult(param, id string, output json.RawMessage, failed bool) turn.ToolResult {
	return turn.ToolResult{ToolUseID: id, OK: !failed, Output: c.toolOutput(param, output)}
}
