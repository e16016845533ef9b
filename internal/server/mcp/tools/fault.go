package tools

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/text/render"
)

// faultResult returns the result of a call that was rejected or has failed.
func faultResult(f *fault.Error) *mcp.CallToolResult {
	var text strings.Builder
	text.WriteString(render.Exact(f.Message)) // it may repeat the request
	if len(f.Detail.Violations) > 1 {
		for _, v := range f.Detail.Violations {
			fmt.Fprintf(&text, "\n- %s: %s", render.Exact(strings.TrimPrefix(v.Param, "/")), render.Exact(v.Message))
		}
	}
	for _, more := range []struct {
		what string
		list []string
	}{{"Candidates", f.Detail.Candidates}, {"There are", f.Detail.AvailableKeys}} {
		if len(more.list) > 0 {
			fmt.Fprintf(&text, "\n%s: %s", more.what, render.Exact(strings.Join(more.list, ", ")))
		}
	}
	if hint := hints[f.Code]; hint != "" {
		text.WriteString("\n" + hint)
	}
	value, _ := json.Marshal(map[string]server.Failure{"fault": server.FailureOf(f)}) // every protocol can encode it
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text.String()}}, StructuredContent: json.RawMessage(value),
		IsError: true}
}

// hints are remedies that are tools.
var hints = map[fault.Code]string{
	fault.SessionNotFound:   "list_sessions shows the conversations that there are.",
	fault.ApprovalNotFound:  "list_pending shows the approvals that wait for an answer.",
	fault.FileNotFound:      "wiki_search finds the names of pages.",
	fault.UnknownSkill:      "list_skills shows the skills that there are.",
	fault.InvalidSkillInput: "list_skills shows what each skill takes.",
	fault.InsufficientScope: "A person can make a key with this scope.",
}
