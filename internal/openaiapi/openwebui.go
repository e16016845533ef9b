package openaiapi

import (
	"net/http"
	"strings"
)

// How the prompts of Open WebUI begin: those of its own tasks, and the one that it puts in front
// of a message that comes with documents.
const (
	taskPrompt    = "### Task:\n"
	contextPrompt = taskPrompt + "Respond to the user query"
	contextEnd    = "</context>"
)

// chore reports whether Open WebUI wants something for itself, a title or the like. A connection
// of it can say so in a header; else its prompts are known where the chat has a name.
func chore(h http.Header, text string) bool {
	if h.Get("X-Openwebui-Task") != "" {
		return true
	}
	if !strings.HasPrefix(text, taskPrompt) || strings.HasPrefix(text, contextPrompt) {
		return false
	}
	for name := range h {
		if strings.HasPrefix(name, "X-Openwebui-") || name == "X-Session-Id" {
			return true
		}
	}
	return false
}

// typed is what somebody has written of a message: Open WebUI puts the documents of a chat in
// front of each.
func typed(text string) string {
	if i := strings.LastIndex(text, contextEnd); i >= 0 && strings.HasPrefix(text, contextPrompt) {
		return text[i+len(contextEnd):]
	}
	return text
}
