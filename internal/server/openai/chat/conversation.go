package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/turn"
)

// conversation is the list of messages of a request.
type conversation struct {
	text     string            // the last message of the user
	more     bool              // an assistant message follows it
	last     string            // the last assistant message
	results  []turn.ToolResult // the list ends with these results of the client's tools
	supplied event.Supplied    // the context before the message
	files    []inlineFile      // in the message
}

func isSystem(m request.ChatMessage) bool { return m.Role == "system" || m.Role == "developer" }

func isResult(m request.ChatMessage) bool {
	return m.Role == "tool" || m.Type == "function_call_output"
}

func isAssistant(m request.ChatMessage) bool {
	return m.Role == "assistant" || m.Type == "function_call"
}

// parseConversation parses the messages: the last one of the user, or the results of tools at the
// end, and the context before it.
func (in *Incoming) parseConversation(r *server.Request) (talk conversation) {
	list := request.ChatMessages(&in.Checks, in.Given["messages"])
	if list == nil {
		return talk
	}
	talk.supplied.Instructions = in.parseInstructions(r, list)
	end := len(list) // without system messages at the end
	for end > 0 && isSystem(list[end-1]) {
		end--
	}
	begin := end
	for begin > 0 && (isResult(list[begin-1]) || isSystem(list[begin-1])) {
		begin--
	}
	if begin < end && slices.ContainsFunc(list[begin:end], isResult) {
		talk.results = in.parseResults(list[begin:end], begin)
		return talk
	}
	if end > 0 && list[end-1].Role == "function" {
		in.Add(fault.Violation{Param: "/messages", Rule: "enum",
			Message: "Send the result of a tool as a message with the role tool and its tool_call_id."})
		return talk
	}
	i := request.LastUserMessage(&in.Checks, list)
	if i < 0 {
		return talk
	}
	talk.more = end > 0 && isAssistant(list[end-1])
	at := fmt.Sprintf("messages/%d/content", i)
	if r.Names["command"] == "" {
		r.Names["command"] = at
		if theirs, ok := r.Names["messages"]; ok {
			r.Names["command"] = theirs + strings.TrimPrefix(at, "messages")
		}
	}
	before := list[:i]
	if talk.more {
		before = list
	}
	for _, m := range slices.Backward(before) {
		if m.Role == "assistant" {
			talk.last = string(m.Content) + string(m.Refusal)
			break
		}
	}
	content, files := in.takeFiles("/"+at, list[i].Content)
	if talk.text = request.MessageText(&in.Checks, "/"+at, content); strings.TrimSpace(talk.text) == "" && len(files) > 0 {
		talk.text = "See what is attached."
	}
	talk.files = files
	if len(files) > request.MaxAttachments {
		in.Longer("/"+at, "files", request.MaxAttachments)
	}
	talk.supplied.Messages = in.parseHistory(list[:i])
	return talk
}

// maxInstructions is the maximum number of bytes of a caller's instructions.
const maxInstructions = 128 << 10

// parseInstructions returns the system messages, which follow the instructions of the workspace if
// it allows that.
func (in *Incoming) parseInstructions(r *server.Request, list []request.ChatMessage) string {
	var texts []string
	if raw, ok := in.Given["instructions"]; ok {
		if text := in.Word("/instructions", raw, maxInstructions); text != "" {
			texts = append(texts, text)
		}
	}
	for _, m := range list {
		if text := contentText(m.Content); isSystem(m) && strings.TrimSpace(text) != "" {
			texts = append(texts, text)
		}
	}
	all := strings.Join(texts, "\n\n")
	switch {
	case !r.Caller.Workspace.CallerInstructions:
		if slices.ContainsFunc(list, isSystem) {
			in.Ignored = append(in.Ignored, "system messages")
		}
		if _, ok := in.Given["instructions"]; ok {
			in.Ignored = append(in.Ignored, "instructions")
		}
		return ""
	case len(all) > maxInstructions:
		in.Add(fault.Violation{Param: "/messages", Rule: "max_length", Expected: maxInstructions,
			Message: fmt.Sprintf("The system messages have more than %d bytes together.", maxInstructions)})
		return ""
	}
	return all
}

// parseResults parses the results of tools at the end of a conversation.
func (in *Incoming) parseResults(list []request.ChatMessage, at int) (results []turn.ToolResult) {
	given := make(map[string]bool)
	for i, m := range list {
		if isSystem(m) {
			continue
		}
		id, output := m.CallID, contentText(m.Content)
		if m.Type == "function_call_output" {
			id, output = m.ItemCall, contentText(m.Output)
		}
		switch {
		case id == "":
			in.Add(fault.Violation{Param: fmt.Sprintf("/messages/%d", at+i), Rule: "required", Message: "A result of a tool has no tool_call_id."})
		case given[id]:
			in.Add(fault.Violation{Param: fmt.Sprintf("/messages/%d", at+i), Rule: "unique",
				Message: fmt.Sprintf("The call %q has two results.", request.Short(id))})
		case len(output) > request.MaxToolOutput:
			in.Longer(fmt.Sprintf("/messages/%d/content", at+i), "bytes", request.MaxToolOutput)
		default:
			results, given[id] = append(results, turn.ToolResult{ToolUseID: id, OK: true, Output: output}), true
		}
	}
	if results == nil { // reported
		results = []turn.ToolResult{{}}
	}
	return results
}

// resultText describes the result of a tool as a message. The model has no call for it.
func resultText(tool string, r turn.ToolResult) string {
	return strings.TrimSpace(fmt.Sprintf("The result of the call of %s:\n\n%s", tool, r.Output))
}

// contentText returns the text of an earlier message: a string, or the texts of its parts.
func contentText(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct{ Text, Refusal string }
	if json.Unmarshal(raw, &parts) != nil {
		return string(raw)
	}
	var texts []string
	for _, p := range parts {
		if p.Text+p.Refusal != "" {
			texts = append(texts, p.Text+p.Refusal)
		}
	}
	return strings.Join(texts, "\n")
}
