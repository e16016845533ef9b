package request

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/parley-server/parley/internal/turn"
)

// The limits of the caller's own tools.
const (
	MaxTools           = 64
	MaxToolName        = 64        // characters
	MaxToolDescription = 4096      // characters
	MaxToolDefinitions = 256 << 10 // bytes of all tools of a message
	MaxToolOutput      = 256 << 10 // bytes of one result
)

// toolNames matches the names of the caller's tools. Two underscores separate the name of a server
// from that of its tool.
var toolNames = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]{0,63}$`)

var toolFields = []Field[turn.CallerTool]{
	{"name", func(c *Checks, at string, raw json.RawMessage, t *turn.CallerTool) { t.Name = c.toolName(at, raw) }},
	{"description", func(c *Checks, at string, raw json.RawMessage, t *turn.CallerTool) {
		t.Description = c.Word(at, raw, MaxToolDescription)
	}},
	{"input_schema", func(c *Checks, at string, raw json.RawMessage, t *turn.CallerTool) {
		t.Schema = c.smallObject(at, raw, MaxSchema)
	}},
}

// CallerTools parses the caller's tools.
func (c *Checks) CallerTools(param string, raw json.RawMessage) (tools []turn.CallerTool) {
	if len(raw) > MaxToolDefinitions {
		c.Longer(param, "bytes", MaxToolDefinitions)
		return nil
	}
	for i, item := range c.Array(param, raw, MaxTools) {
		at, t := param+"/"+strconv.Itoa(i), turn.CallerTool{}
		if given := ParseObject(c, at, item, &t, toolFields); given != nil && !given["name"] {
			c.addViolation(at+"/name", "required", at[1:]+" has no name.", nil)
		}
		tools = append(tools, t)
	}
	return tools
}

func (c *Checks) toolName(param string, raw json.RawMessage) string {
	name, ok := c.Text(param, raw)
	if ok && (!toolNames.MatchString(name) || strings.Contains(name, "__")) {
		c.addViolation(param, "format", fmt.Sprintf(
			"%s must begin with a letter and have 1 to %d letters, digits, - and _, without two _ in succession.", param[1:], MaxToolName),
			toolNames.String())
	}
	return name
}

// toolResult is a posted result while it is parsed.
type toolResult struct {
	turn.ToolResult
	failed bool
}

var resultFields = []Field[toolResult]{
	{"tool_use_id", func(c *Checks, at string, raw json.RawMessage, r *toolResult) { r.ToolUseID = c.Word(at, raw, MaxName) }},
	{"output", func(c *Checks, at string, raw json.RawMessage, r *toolResult) {
		r.Output, r.OK = c.toolOutput(at, raw), true
	}},
	{"error", func(c *Checks, at string, raw json.RawMessage, r *toolResult) {
		text, _ := c.parseProse(at, raw, MaxToolOutput)
		if r.failed = true; len(text) > MaxToolOutput {
			c.Longer(at, "bytes", MaxToolOutput)
		}
		r.Output = text
	}},
}

// ToolResults parses the results of calls of the caller's tools.
func (c *Checks) ToolResults(body []Member) (results []turn.ToolResult) {
	var list json.RawMessage
	given := ParseMembers(c, "", body, &list, []Field[json.RawMessage]{
		{"results", func(_ *Checks, _ string, raw json.RawMessage, to *json.RawMessage) { *to = raw }},
	}, nil)
	if !given["results"] {
		c.addViolation("/results", "required", "results is missing: a list of {tool_use_id, output} or {tool_use_id, error}.", nil)
		return nil
	}
	items := c.Array("/results", list, MaxTools)
	if items != nil && len(items) == 0 {
		c.addViolation("/results", "min_items", "results is empty.", 1)
	}
	seen := make(map[string]bool, len(items))
	for i, item := range items {
		at := "/results/" + strconv.Itoa(i)
		if !c.Object(at, item) {
			continue
		}
		r := c.toolResult(at, Given(Members(item)), resultFields)
		if seen[r.ToolUseID] && r.ToolUseID != "" {
			c.addViolation(at+"/tool_use_id", "unique", "results has this call twice.", nil)
		}
		seen[r.ToolUseID] = true
		results = append(results, r)
	}
	return results
}

// LaterResult parses the result of one call, which the address of the request names.
func (c *Checks) LaterResult(body []Member) turn.ToolResult {
	return c.toolResult("", body, resultFields[1:])
}

func (c *Checks) toolResult(at string, members []Member, fields []Field[toolResult]) turn.ToolResult {
	var r toolResult
	given := ParseMembers(c, at, members, &r, fields, nil)
	if len(fields) == len(resultFields) && !given["tool_use_id"] {
		c.addViolation(at+"/tool_use_id", "required", at[1:]+" has no tool_use_id.", nil)
	}
	if given["output"] == given["error"] {
		c.addViolation(at+"/output", "exactly_one", "Send either output, the result, or error, why there is none.", nil)
	}
	return r.ToolResult
}

// toolOutput parses a result: a text, or any other value as compact JSON.
func (c *Checks) toolOutput(param string, raw json.RawMessage) string {
	output := ""
	if len(raw) > 0 && raw[0] == '"' {
		output, _ = c.Text(param, raw)
	} else {
		var compact bytes.Buffer
		_ = json.Compact(&compact, raw) // it is valid JSON
		output = compact.String()
	}
	if len(output) > MaxToolOutput {
		c.Longer(param, "bytes", MaxToolOutput)
		return ""
	}
	return output
}
