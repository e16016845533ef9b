package builtin

import (
	"regexp"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

var (
	commandAsked = regexp.MustCompile(
		politely + `(?:run|execute)\s+(?:the\s+)?(?:bash\s+|shell\s+)?(?:command\s+)?(?:["'“‘\x60](.+)["'”’\x60]\W*|(.+))$`)
	fetchAsked  = regexp.MustCompile(politely + `(?:fetch|get|download|request|open)\s+(?:me\s+)?(https?://[^\s"'<>\x60]+?)[.!?]?$`)
	fileWritten = regexp.MustCompile(
		politely + `(?:write|save|put|create|make)\b[^:\n]{0,40}?\bfile\s+(?:called |named ` +
			`)?["'“‘\x60]?([^"'”’\x60:\s]+?)["'”’\x60]?\s*:\s*(.+)$`)
	savedToFile = regexp.MustCompile(politely + `(?:write|save|put|store)\s+(.+?)\s+(?:in|to|into)\s+(?:the |a )?(?:new ` +
		`)?file\s+(?:called |named )?["'“‘\x60]?([^"'”’\x60:\s]+?)["'”’\x60]?[.!?]?$`)
	toolAsked = regexp.MustCompile(
		politely + `(?:use|call)\s+(?:the\s+)?(?:tool\s+)?["'“‘\x60]?([A-Za-z][A-Za-z0-9_-]*)["'”’\x60]?(?:\s+with\s+(\{.*\}))?[.!?]?$`)
	fileWanted = regexp.MustCompile(
		politely + `(?:give me|send me|attach|hand me)\s+(?:the |a )?(?:file\s+)?["'“‘\x60]?([^"'”’\x60:\s]+\.[A-Za-z0-9]+)["'”’\x60]?[.!?]?$`)
)

// answerCommand handles a sentence that requests a tool: run a command, make a request, write a
// file or send one, or call a tool by its name. ok is false if it requests none of these.
func (c conversation) answerCommand(question string) (r reply, ok bool) {
	if m := toolAsked.FindStringSubmatch(question); m != nil && c.offered[m[1]] {
		if r, ok := c.findResult(m[1]); ok {
			return sayText(formatOutput(r)), true
		}
		return reply{calls: []event.ToolCall{{Tool: m[1], Input: model.Input(m[2])}}}, true
	}
	if m := commandAsked.FindStringSubmatch(question); m != nil {
		return c.callTool("bash", "I cannot run commands: this server has no sandbox for them. docs/guides/sandbox.md says what to do.",
			map[string]string{"command": m[1] + m[2]}, formatOutput), true
	}
	if m := fetchAsked.FindStringSubmatch(question); m != nil {
		return c.callTool("http_request", "I cannot make requests here.", map[string]string{"url": m[1]}, formatOutput), true
	}
	if m := fileWanted.FindStringSubmatch(question); m != nil {
		return c.callTool("attach_file", "I cannot hand out files here.", map[string]string{"path": m[1]}, outcome), true
	}
	path, content := "", ""
	if m := fileWritten.FindStringSubmatch(question); m != nil {
		path, content = m[1], m[2]
	} else if m := savedToFile.FindStringSubmatch(question); m != nil {
		path, content = m[2], quoted.ReplaceAllString(m[1], "$1")
	}
	if path == "" {
		return r, false
	}
	return c.callTool("write", "I cannot write files here.", map[string]string{"path": path, "content": strings.TrimSpace(content) + "\n"},
		outcome), true
}

// callTool calls a tool, and then reports the outcome.
func (c conversation) callTool(tool, lacking string, input map[string]string, tell func(result) string) reply {
	if r, ok := c.findResult(tool); ok {
		return sayText(tell(r))
	}
	if !c.offered[tool] {
		return sayText(lacking)
	}
	return useTool(tool, input)
}

// formatOutput formats the output of a tool.
func formatOutput(r result) string {
	text := strings.TrimRight(r.output, "\n")
	if runes := []rune(text); len(runes) > 4000 {
		text = string(runes[:4000]) + "\n…"
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if r.failed {
		return "That did not work:\n\n" + fence + "\n" + text + "\n" + fence
	}
	return fence + "\n" + text + "\n" + fence
}

// outcome returns the first line of a tool's output.
func outcome(r result) string { return firstLine(r.output) }
