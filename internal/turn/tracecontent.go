package turn

import (
	"encoding/json"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// maxContent is the maximum size of one attribute with content, in bytes: receivers reject large
// requests.
const maxContent = 64 << 10

// message is a message in the format of the conventions.
type message struct {
	Role         string `json:"role"`
	Parts        []part `json:"parts"`
	FinishReason string `json:"finish_reason,omitempty"`
}

// part is a part of a message: text, a call of a tool, its result, or the mention of a file.
type part struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  string          `json:"response,omitempty"`
	MIME      string          `json:"mime_type,omitempty"`
}

// inputMessages converts the messages of a request. The bytes of files are left out.
func inputMessages(list []model.Message) []message {
	out := make([]message, len(list))
	for i, m := range list {
		out[i].Role = string(m.Role)
		if m.Role == model.ToolRole {
			out[i].Parts = []part{{Type: "tool_call_response", ID: m.CallID, Response: m.Text}}
			continue
		}
		if m.Text != "" {
			out[i].Parts = append(out[i].Parts, part{Type: "text", Content: m.Text})
		}
		for _, file := range m.Files {
			out[i].Parts = append(out[i].Parts, part{Type: "file", Name: file.Name, MIME: file.MIME})
		}
		for _, image := range m.Images {
			out[i].Parts = append(out[i].Parts, part{Type: "image", MIME: image.MIME})
		}
		out[i].Parts = append(out[i].Parts, callParts(m.Calls)...)
	}
	return out
}

func outputMessage(text string, calls []event.ToolCall, reason string) message {
	m := message{Role: "assistant", FinishReason: reason}
	if text != "" {
		m.Parts = append(m.Parts, part{Type: "text", Content: text})
	}
	m.Parts = append(m.Parts, callParts(calls)...)
	return m
}

func callParts(calls []event.ToolCall) (parts []part) {
	for _, c := range calls {
		parts = append(parts, part{Type: "tool_call", ID: c.ID, Name: c.Tool, Arguments: c.Input})
	}
	return parts
}

// encode returns the JSON of content without secrets, or "" if it is too large.
func (c *chat) encode(content any) string {
	data, err := json.Marshal(content)
	if err != nil || len(data) > maxContent {
		return ""
	}
	return c.redact(string(data))
}
