package docsite

import (
	"fmt"
	"strings"
)

// introduction is the beginning of llms.txt.
const introduction = `# Parley

> A streaming chat API for agents on PostgreSQL. A client sends a message to a workspace's agent and
> reads the answer as Server-Sent Events: text, tool calls, results, usage, errors, done. Each event
> is committed before it is sent, so a client that loses its connection resumes after the last id it
> received.

All addresses below return Markdown. The OpenAPI document is the reference of every field, limit and
error: [openapi](%[1]s/api/v1/openapi).
`

// LLMs returns llms.txt: every page with its address and one line on its content. origin is the
// public address of the server, without the path of the pages.
func (l *Library) LLMs(origin string) string {
	var b strings.Builder
	fmt.Fprintf(&b, introduction, origin)
	group := ""
	for _, p := range l.All()[1:] {
		if p.Group != group {
			group = p.Group
			fmt.Fprintf(&b, "\n## %s\n\n", group)
		}
		fmt.Fprintf(&b, "- [%s](%s): %s\n", p.Title, origin+l.MarkdownPath(p), p.Summary)
	}
	return b.String()
}

// LLMsFull returns llms-full.txt: the text of every page, each after its address.
func (l *Library) LLMsFull(origin string) string {
	var b strings.Builder
	fmt.Fprintf(&b, introduction, origin)
	for _, p := range l.All()[1:] {
		fmt.Fprintf(&b, "\n---\n\nSource: %s\n\n%s\n", origin+l.MarkdownPath(p), strings.TrimSpace(string(p.Markdown)))
	}
	return b.String()
}
