package apitest

import (
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server/request"
)

// HeldCommand is a command whose turn writes text, waits at the gate and writes more.
const HeldCommand = "@text 3 deltas\n@call gate {}\n@text 3 deltas"

// GatedCommand is a command whose turn waits at the gate and then ends.
const GatedCommand = "@call gate {}\n@say the end"

// Quote returns a text as JSON.
func Quote(text string) string { return string(request.QuoteText(text)) }

// CompletionsPath is the path of Chat Completions.
const CompletionsPath = "/openai/v1/chat/completions"

// ResponsesPath is the path of Responses.
const ResponsesPath = "/openai/v1/responses"

// Completion returns the body of a completion with one message, and additional members before it.
func Completion(text string, members ...string) string {
	return fmt.Sprintf(`{"model":"demo",%s"messages":[{"role":"user","content":%s}]}`, strings.Join(append(members, ""), ","), Quote(text))
}

// UIChatPath is the path of the AI SDK.
const UIChatPath = "/api/v1/workspaces/demo/ui/chat"

// UISubmitted is the trigger of a user's message.
const UISubmitted = `"trigger":"submit-message",`

// UIChat returns a request of the AI SDK.
func UIChat(id, rest string, messages ...string) Call {
	return Call{Path: UIChatPath, Body: fmt.Sprintf(`{"id":%q,%s"messages":[%s]}`, id, rest, strings.Join(messages, ","))}
}

// UIUser returns a user's message of the AI SDK.
func UIUser(id, text string) string {
	return fmt.Sprintf(`{"id":%q,"role":"user","parts":[{"type":"text","text":%s}]}`, id, Quote(text))
}

// UIAssistant returns an assistant's message of the AI SDK, with answers to approvals.
func UIAssistant(id string, approvals ...string) string {
	parts := []string{`{"type":"step-start"}`, `{"type":"text","text":"x","state":"done"}`}
	for i, a := range approvals {
		parts = append(parts, fmt.Sprintf(`{"type":"dynamic-tool","toolCallId":"c%d","state":"approval-responded","approval":%s}`, i, a))
	}
	return fmt.Sprintf(`{"id":%q,"role":"assistant","parts":[%s]}`, id, strings.Join(parts, ","))
}

// UIMessage returns useChat's request for a message.
func UIMessage(chat, text string) Call { return UIMessageAs(chat, uuid.NewString(), text) }

// UIMessageAs is UIMessage with an id for the message.
func UIMessageAs(chat, id, text string) Call {
	return Call{Path: UIChatPath, Body: fmt.Sprintf(
		`{"id":%q,"trigger":"submit-message","messages":[{"id":%q,"role":"user","parts":[{"type":"text","text":%s}]}]}`, chat, id, Quote(text))}
}

// UIAnswer returns useChat's request that answers an approval.
func UIAnswer(chat, approval string, approved bool) Call {
	return Call{Path: UIChatPath, Body: fmt.Sprintf(
		`{"id":%q,"trigger":"submit-message","messageId":"m2","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"x"}]},`+
			`{"id":"m2","role":"assistant","parts":[{"type":"step-start"},{"type":"dynamic-tool","toolCallId":"c",`+
			`"state":"approval-responded","approval":{"id":%q,"approved":%v,"reason":"because"}}]}]}`, chat, approval, approved)}
}

// RunsPath is the path of AG-UI.
const RunsPath = "/api/v1/workspaces/demo/ag-ui"

// AGUIRun returns the request of AG-UI's HttpAgent for a message.
func AGUIRun(thread, id, text string) Call {
	return Call{Path: RunsPath, Body: fmt.Sprintf(
		`{"threadId":%q,"runId":%q,"protocolVersion":"1.0","state":{},"tools":[],"context":[],"forwardedProps":{},"messages":[{"id":%q,`+
			`"role":"user","content":%s}]}`, thread, id, "m-"+id, Quote(text))}
}

// AGUIResume returns the request that answers an interrupt.
func AGUIResume(thread, interrupt, rest string) Call {
	return Call{Path: RunsPath, Body: fmt.Sprintf(
		`{"threadId":%q,"runId":%q,"messages":[{"id":"m","role":"user","content":"x"},{"id":"a","role":"assistant","toolCalls":[]}],`+
			`"resume":[{"interruptId":%q,%s}]}`, thread, uuid.NewString(), interrupt, rest)}
}

// AGUIApproves are the members of an answer that approves.
const AGUIApproves = `"status":"resolved","payload":{"approved":true}`
