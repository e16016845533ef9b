package openai

import (
	"net/http"
	"slices"
	"strings"
)

// How the prompts of Open WebUI begin: those of its own tasks, and the one that it puts in front
// of a message that comes with documents.
const (
	taskPrompt    = "### Task:\n"
	contextPrompt = taskPrompt + "Respond to the user query"
	contextEnd    = "</context>"
)

// tasks are how its own prompts go on behind the taskPrompt: for a title, tags, questions to
// follow, a search, an image, and what somebody is typing.
var tasks = []string{
	"Generate a concise, 3-5 word title",
	"Generate 1-3 broad tags",
	"Suggest 3-5 relevant follow-up",
	"Analyze the chat history to determine",
	"Generate a detailed prompt for am image",
	"You are an autocompletion system",
}

// chore reports whether Open WebUI wants something for itself, a title or the like. A connection
// of it can say so in a header; else its prompts are known where the chat has a name. All else
// is a message, for people write such headings, too.
func chore(h http.Header, text string) bool {
	if filled(h.Get("X-Openwebui-Task")) != "" {
		return true
	}
	rest, ok := strings.CutPrefix(text, taskPrompt)
	if !ok || !slices.ContainsFunc(tasks, func(begin string) bool { return strings.HasPrefix(rest, begin) }) {
		return false
	}
	for name := range h {
		if strings.HasPrefix(name, "X-Openwebui-") || name == "X-Session-Id" {
			return true
		}
	}
	return false
}

// filled is the value of a header; one that holds a placeholder for which the client had no
// value says nothing.
func filled(value string) string {
	if strings.HasPrefix(value, "{{") && strings.HasSuffix(value, "}}") {
		return ""
	}
	return value
}

// typed is what somebody has written of a message: Open WebUI puts the documents of a chat in
// front of each.
func typed(text string) string {
	if i := strings.LastIndex(text, contextEnd); i >= 0 && strings.HasPrefix(text, contextPrompt) {
		return text[i+len(contextEnd):]
	}
	return text
}
