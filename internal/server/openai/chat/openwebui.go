package chat

import (
	"net/http"
	"slices"
	"strings"
)

// The prefixes of Open WebUI's prompts: of its own tasks, and the one that it puts before a message
// with documents.
const (
	taskPrompt    = "### Task:\n"
	contextPrompt = taskPrompt + "Respond to the user query"
	contextEnd    = "</context>"
)

// tasks are the continuations of its own prompts after taskPrompt: for a title, tags, follow-up
// questions, a search, an image, and autocompletion.
var tasks = []string{
	"Generate a concise, 3-5 word title",
	"Generate 1-3 broad tags",
	"Suggest 3-5 relevant follow-up",
	"Analyze the chat history to determine",
	"Generate a detailed prompt for am image",
	"You are an autocompletion system",
}

// isOwnTask reports whether the message is one of Open WebUI's own prompts, such as for a title. A
// connection can declare that in a header; otherwise the prompts are recognized if the chat has a
// name. Everything else is a message, since users write such headings, too.
func isOwnTask(h http.Header, text string) bool {
	if filledHeader(h.Get("X-Openwebui-Task")) != "" {
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

// filledHeader returns the value of a header, "" if it contains a placeholder that the client did
// not replace.
func filledHeader(value string) string {
	if strings.HasPrefix(value, "{{") && strings.HasSuffix(value, "}}") {
		return ""
	}
	return value
}

// typedText returns the part of a message that the user typed: Open WebUI puts the documents of a
// chat before it.
func typedText(text string) string {
	if i := strings.LastIndex(text, contextEnd); i >= 0 && strings.HasPrefix(text, contextPrompt) {
		return text[i+len(contextEnd):]
	}
	return text
}
