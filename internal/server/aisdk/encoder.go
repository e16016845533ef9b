package aisdk

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/text/render"
)

// Encoder projects the rows of a turn to chunks.
type Encoder struct {
	reading server.Reading
	base    string // base address of links

	texts    int    // text parts so far
	text     string // id of the open part; "": none
	thoughts int    // reasoning parts so far
	thought  string // id of the open one; "": none
	answered bool   // a tool has returned: the model's next text begins a step
	files    int
	cut      bool // the model's last reply was cut
	error    *event.Error
	tools    map[string]frame                  // by their calls, as they were sent
	denied   map[string]bool                   // denied calls
	own      map[string]ownCall                // calls of the client's own tools
	asked    map[uuid.UUID][]event.Operation   // by their questions
	secrets  map[uuid.UUID]event.InputRequired // by their questions
}

// NewEncoder returns an encoder.
func NewEncoder(rd server.Reading, base string) *Encoder {
	return &Encoder{reading: rd, base: base, tools: make(map[string]frame), denied: make(map[string]bool), own: make(map[string]ownCall),
		asked: make(map[uuid.UUID][]event.Operation), secrets: make(map[uuid.UUID]event.InputRequired)}
}

// Begin implements server.Encoder. The rows after a question continue the same message and the same
// step.
func (t *Encoder) Begin() []any {
	start := frame{Type: "start", MessageID: t.reading.Turn.String(), Metadata: metadata{t.reading.Session(), t.reading.Turn}}
	if t.reading.After != uuid.Nil {
		return []any{start}
	}
	begin := []any{start, frame{Type: "start-step"}}
	if len(t.reading.Rejected) > 0 {
		begin = append(begin, frame{Type: "data-rejected-attachments", ID: "rejected-attachments", Data: t.reading.Rejected})
	}
	return begin
}

// Row implements server.Encoder.
func (t *Encoder) Row(row server.Row) []any {
	frames := t.encodeRow(row)
	if row.Seen {
		return nil
	}
	return frames
}

func (t *Encoder) encodeRow(row server.Row) []any {
	if b, ok := row.Body.(event.Reasoning); ok {
		return t.encodeReasoning(b)
	}
	return append(t.closeReasoning(), t.encodeBody(row)...)
}

// encodeReasoning adds to the reasoning part, which anything else closes.
func (t *Encoder) encodeReasoning(b event.Reasoning) (out []any) {
	if b.Text == "" { // a delta must not be empty
		return nil
	}
	out = t.beginStep()
	if t.thought == "" {
		out = append(out, t.closeText()...)
		t.thoughts++
		t.thought = "reasoning-" + strconv.Itoa(t.thoughts)
		out = append(out, frame{Type: "reasoning-start", ID: t.thought})
	}
	return append(out, frame{Type: "reasoning-delta", ID: t.thought, Delta: b.Text})
}

// closeReasoning ends the open reasoning.
func (t *Encoder) closeReasoning() []any {
	if t.thought == "" {
		return nil
	}
	end := frame{Type: "reasoning-end", ID: t.thought}
	t.thought = ""
	return []any{end}
}

func (t *Encoder) encodeBody(row server.Row) (out []any) {
	switch b := row.Body.(type) {
	case event.Text:
		if b.Text == "" { // a delta must not be empty
			return nil
		}
		out = t.beginStep()
		if t.text == "" {
			b.Text = strings.TrimPrefix(b.Text, event.StepBreak) // a part stands alone
			t.texts++
			t.text = "text-" + strconv.Itoa(t.texts)
			out = append(out, frame{Type: "text-start", ID: t.text})
		}
		return append(out, frame{Type: "text-delta", ID: t.text, Delta: b.Text})
	case event.Reply:
		t.cut = b.Cut
		for _, c := range b.Calls {
			if t.reading.Own[c.Tool] {
				t.own[c.ID] = ownCall{input: c.Input}
			}
		}
		return t.beginStep()
	case event.ToolUse:
		if _, own := t.own[b.ToolUseID]; own { // sent when its result is needed, or known
			return t.closeText()
		}
		input, _ := json.Marshal(map[string]string{"summary": b.Summary}) // the full input is only for approvers
		return append(t.closeText(), t.encodeToolCall(b.ToolUseID, b.Tool, b.Summary, input)...)
	case event.ToolResult:
		return t.encodeResult(b)
	case event.ToolRequired:
		return t.encodeOwnCalls(b, row)
	case event.ToolReply:
		t.noteReply(b)
	case event.InputRequired:
		return t.encodeQuestion(b, row.Pending)
	case event.ConnectRequired:
		return append(t.closeText(), t.encodeNote(render.Connect(b, server.AbsoluteURL(t.base, b.ConnectURL)))...)
	case event.Decision:
		return t.encodeDecision(b)
	case event.Usage:
		return append(t.closeText(), frame{Type: "data-usage", ID: "usage", Data: b})
	case event.Structured:
		return append(t.closeText(), frame{Type: "data-structured", ID: "structured", Data: b})
	case event.Attachment:
		out = t.closeText()
		for _, f := range b.Attachments {
			t.files++
			f.DownloadURL = server.AbsoluteURL(t.base, f.DownloadURL)
			out = append(out, frame{Type: "data-attachment", ID: "attachment-" + strconv.Itoa(t.files), Data: f})
		}
		return out
	case event.Error:
		t.error = &b
	case event.Done:
		return t.finishMessage()
	}
	return nil
}

// closeText ends the open text.
func (t *Encoder) closeText() []any {
	if t.text == "" {
		return nil
	}
	end := frame{Type: "text-end", ID: t.text}
	t.text = ""
	return []any{end}
}

// beginStep begins a new step with the model's first text after a tool's result.
func (t *Encoder) beginStep() []any {
	if !t.answered {
		return nil
	}
	t.answered = false
	return append(t.closeText(), frame{Type: "finish-step"}, frame{Type: "start-step"})
}

// encodeToolCall sends a tool call, once.
func (t *Encoder) encodeToolCall(id, tool, summary string, input json.RawMessage) []any {
	if _, known := t.tools[id]; known {
		return nil
	}
	t.tools[id] = frame{Type: "tool-input-available", ToolCallID: id, ToolName: tool, Title: summary, Input: input, ProviderExecuted: true,
		Dynamic: true}
	return []any{t.tools[id]}
}

func (t *Encoder) encodeResult(b event.ToolResult) []any {
	t.answered = true
	if call, own := t.own[b.ToolUseID]; own {
		return append(t.closeText(), t.encodeOwnResult(call, b)...)
	}
	switch {
	case t.denied[b.ToolUseID]:
		return nil
	case b.OK:
		return []any{frame{Type: "tool-output-available", ToolCallID: b.ToolUseID, Output: b.Output, ProviderExecuted: true, Dynamic: true}}
	}
	return []any{frame{Type: "tool-output-error", ToolCallID: b.ToolUseID, ErrorText: cmp.Or(b.Output, "The tool failed."),
		ProviderExecuted: true, Dynamic: true}}
}

// encodeQuestion asks for an approval of each call. The message ends there, and its turn waits.
func (t *Encoder) encodeQuestion(b event.InputRequired, pending bool) []any {
	out := t.closeText()
	if b.What == event.InputSecret {
		t.secrets[b.ApprovalID] = b
		return append(out, t.secretFrame(b, "pending"))
	}
	t.asked[b.ApprovalID] = b.Operations
	if needs := render.Approver(b); needs != "" {
		out = append(out, t.encodeNote(needs)...)
	}
	if len(b.OtherCalls) > 0 { // a tool part without an answer would keep the client from sending the approval
		out = append(out, t.encodeNote("The agent asks for an approval. The step has these calls:\n\n"+render.Calls(b.Step()))...)
	}
	for i, op := range b.Operations {
		out = append(out, t.encodeToolCall(op.ToolUseID, op.Tool, op.Summary, op.Input)...)
		out = append(out, frame{Type: "tool-approval-request", ToolCallID: op.ToolUseID,
			ApprovalID: approvalID(b.ApprovalID, i, len(b.Operations))})
	}
	if pending {
		out = append(out, t.endMessage("tool-calls")...)
	}
	return out
}

// encodeNote is a text of the service.
func (t *Encoder) encodeNote(text string) []any {
	t.texts++
	id := "text-" + strconv.Itoa(t.texts)
	return []any{frame{Type: "text-start", ID: id}, frame{Type: "text-delta", ID: id, Delta: text}, frame{Type: "text-end", ID: id}}
}

func (t *Encoder) secretFrame(b event.InputRequired, status string) frame {
	return frame{Type: "data-secret-request", ID: b.ApprovalID.String(), Data: secretRequest{b.ApprovalID, b.KeyName, b.Reason,
		server.AbsoluteURL(t.base, b.SecretURL), b.ExpiresAt, status}}
}

// encodeDecision sends the outcome of a question to a client that shows it.
func (t *Encoder) encodeDecision(b event.Decision) (out []any) {
	if ask, ok := t.secrets[b.ApprovalID]; ok {
		return []any{t.secretFrame(ask, string(b.Outcome))}
	}
	for _, op := range t.asked[b.ApprovalID] {
		switch b.Outcome {
		case event.Allowed:
			out = append(out, t.tools[op.ToolUseID])
		case event.Denied:
			t.denied[op.ToolUseID] = true
			out = append(out, frame{Type: "tool-output-denied", ToolCallID: op.ToolUseID})
		} // the result of an expired question reports it
	}
	return out
}

// finishMessage ends the message.
func (t *Encoder) finishMessage() []any {
	out := t.closeText()
	if t.answered && t.continuesOwnCalls() {
		out = append(out, t.beginStep()...)
	}
	switch {
	case t.error == nil && t.cut:
		return append(out, t.endMessage("length")...)
	case t.error == nil:
		return append(out, t.endMessage("stop")...)
	case t.error.Code == event.Canceled:
		return append(out, frame{Type: "abort", Reason: t.error.Message}, server.RawFrame("[DONE]"))
	case t.error.Code == event.ContentRefused:
		out = append(out, frame{Type: "error", ErrorText: t.error.Message})
		return append(out, t.endMessage("content-filter")...)
	}
	return append(out, t.Fail(*t.error)...)
}

// Fail implements server.Encoder.
func (t *Encoder) Fail(e event.Error) []any {
	return append([]any{frame{Type: "error", ErrorText: e.Message}}, t.endMessage("error")...)
}

func (t *Encoder) endMessage(reason string) []any {
	return []any{frame{Type: "finish-step"}, frame{Type: "finish", FinishReason: reason}, server.RawFrame("[DONE]")}
}
