package agui

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/text/render"
)

// About describes a run.
type About struct {
	Thread, Run string
	Versioned   bool   // the client supports versions of the protocol
	Base        string // base address of links
	// Messages are the client's own, if the run may send some of them again; Calls are then the
	// tool calls of the run's turns.
	Messages json.RawMessage
	Calls    map[string]bool
	Notices  []Notice // sent first
}

// Notice explains why an answer to an interrupt decided nothing.
type Notice struct {
	Message   string `json:"message"`
	Interrupt string `json:"interruptId"`
	Status    string `json:"status"` // the earlier outcome
}

// version is the version of the protocol.
const version = "1.0"

// Encoder projects the rows of a turn to the events of a run.
type Encoder struct {
	about    About
	reading  server.Reading
	messages int             // text messages so far
	message  string          // id of the open message; "": none
	thoughts int             // pieces of reasoning so far
	thought  string          // id of the open one; "": none
	tools    map[string]bool // calls that were sent
	results  map[string]bool // calls whose result was sent
	own      map[string]ownCall
	begun    bool         // an event was sent that the client has not seen
	usage    []tokenUsage // one for each turn
	result   json.RawMessage
	error    *event.Error
	cut      bool // the provider cut the turn's last reply
}

// NewEncoder returns an encoder.
func NewEncoder(about About, rd server.Reading) *Encoder {
	return &Encoder{about: about, reading: rd, tools: make(map[string]bool), results: make(map[string]bool), own: make(map[string]ownCall)}
}

// Begin implements server.Encoder.
func (t *Encoder) Begin() []any {
	started := frame{Type: "RUN_STARTED", ThreadID: t.about.Thread, RunID: t.about.Run}
	if t.reading.Turn != uuid.Nil {
		started.Metadata = map[string]any{"session_id": t.reading.Session(), "turn_id": t.reading.Turn}
	}
	if t.about.Versioned {
		started.Version = version
	}
	begin := []any{started}
	for _, n := range t.about.Notices {
		begin = append(begin, frame{Type: "CUSTOM", Name: "notice", Value: n})
	}
	return append(begin, t.encodeRejected()...)
}

// encodeRejected lists the files that did not come with the message.
func (t *Encoder) encodeRejected() []any {
	if t.reading.After != uuid.Nil || len(t.reading.Rejected) == 0 {
		return nil
	}
	return []any{frame{Type: "CUSTOM", Name: "rejected_attachments", Value: t.reading.Rejected}}
}

// Row implements server.Encoder.
func (t *Encoder) Row(row server.Row) (out []any) {
	if !row.Seen && !t.begun {
		t.begun = true
		out = t.encodeSnapshot()
	}
	frames := t.encodeRow(row)
	if row.Seen {
		return nil
	}
	return append(out, frames...)
}

func (t *Encoder) encodeRow(row server.Row) []any {
	if b, ok := row.Body.(event.Reasoning); ok {
		return t.encodeReasoning(b)
	}
	return append(t.closeReasoning(), t.encodeBody(row)...)
}

// encodeReasoning adds to the reasoning, which anything else ends.
func (t *Encoder) encodeReasoning(b event.Reasoning) (out []any) {
	if t.thought == "" {
		t.thoughts++
		t.thought = t.reading.Turn.String() + "-reasoning-" + strconv.Itoa(t.thoughts)
		out = append(t.closeMessage(), frame{Type: "REASONING_START", MessageID: t.thought},
			frame{Type: "REASONING_MESSAGE_START", MessageID: t.thought, Role: "reasoning"})
	}
	return append(out, frame{Type: "REASONING_MESSAGE_CONTENT", MessageID: t.thought, Delta: &b.Text})
}

// closeReasoning ends the open reasoning.
func (t *Encoder) closeReasoning() []any {
	if t.thought == "" {
		return nil
	}
	id := t.thought
	t.thought = ""
	return []any{frame{Type: "REASONING_MESSAGE_END", MessageID: id}, frame{Type: "REASONING_END", MessageID: id}}
}

func (t *Encoder) encodeBody(row server.Row) (out []any) {
	switch b := row.Body.(type) {
	case event.Text:
		if t.message == "" {
			b.Text = strings.TrimPrefix(b.Text, event.StepBreak) // a message stands alone
			t.messages++
			t.message = t.reading.Turn.String() + "-" + strconv.Itoa(t.messages)
			out = append(out, frame{Type: "TEXT_MESSAGE_START", MessageID: t.message, Role: "assistant"})
		}
		return append(out, frame{Type: "TEXT_MESSAGE_CONTENT", MessageID: t.message, Delta: &b.Text})
	case event.Reply:
		for _, c := range b.Calls {
			if t.reading.Own[c.Tool] {
				t.own[c.ID] = ownCall{input: c.Input}
			}
		}
	case event.ToolUse:
		if _, own := t.own[b.ToolUseID]; own { // sent when its result is needed, or known
			return t.closeMessage()
		}
		args, _ := json.Marshal(map[string]string{"summary": b.Summary}) // the full input is only for approvers
		return append(t.closeMessage(), t.encodeToolCall(b.ToolUseID, b.Tool, args)...)
	case event.ToolRequired:
		return t.encodeOwnCalls(b, row)
	case event.ToolResult:
		if call, own := t.own[b.ToolUseID]; own {
			if call.asked {
				return t.closeMessage()
			}
			out = t.encodeToolCall(b.ToolUseID, b.Tool, call.input)
		}
		t.results[b.ToolUseID] = true
		out = append(t.closeMessage(), out...)
		return append(out, frame{Type: "TOOL_CALL_RESULT", MessageID: b.ToolUseID + "-result", ToolCallID: b.ToolUseID, Content: &b.Output,
			Role: "tool"})
	case event.InputRequired:
		return t.encodeQuestion(b, row.Pending)
	case event.ConnectRequired:
		return t.encodeConnect(b, row.Pending)
	case event.Usage:
		t.cut = b.Truncated
		t.usage = append(t.usage, tokenUsage{Model: b.Model, Input: b.InputTokens, Output: b.OutputTokens, Total: b.InputTokens + b.OutputTokens})
	case event.Structured:
		t.result = b.Result
	case event.Attachment:
		server.CompleteLinks(t.about.Base, b.Attachments)
		return append(t.closeMessage(), frame{Type: "CUSTOM", Name: "attachment", Value: b})
	case event.Error:
		t.error = &b
	case event.Done:
		return t.finishRun()
	}
	return nil
}

// closeMessage ends the open message.
func (t *Encoder) closeMessage() []any {
	if t.message == "" {
		return nil
	}
	end := frame{Type: "TEXT_MESSAGE_END", MessageID: t.message}
	t.message = ""
	return []any{end}
}

// encodeToolCall sends a tool call, once.
func (t *Encoder) encodeToolCall(id, tool string, args json.RawMessage) []any {
	if t.tools[id] {
		return nil
	}
	t.tools[id] = true
	return []any{
		frame{Type: "TOOL_CALL_START", ToolCallID: id, ToolCallName: tool},
		frame{Type: "TOOL_CALL_ARGS", ToolCallID: id, Delta: new(string(args))},
		frame{Type: "TOOL_CALL_END", ToolCallID: id},
	}
}

// encodeQuestion ends the run with an interrupt, while the turn waits.
func (t *Encoder) encodeQuestion(b event.InputRequired, pending bool) []any {
	out := t.closeMessage()
	for _, c := range b.Step() {
		if _, own := t.own[c.ToolUseID]; !own { // a client runs a call of its own at once
			out = append(out, t.encodeToolCall(c.ToolUseID, c.Tool, c.Input)...)
		}
	}
	if !pending {
		return out
	}
	return append(out, t.interruptFrame(b))
}

// encodeConnect ends the run with an interrupt that has the link, while the turn waits.
func (t *Encoder) encodeConnect(b event.ConnectRequired, pending bool) []any {
	out := t.closeMessage()
	if !pending {
		return out
	}
	link := server.AbsoluteURL(t.about.Base, b.ConnectURL)
	return append(out, t.finishedFrame(outcome{Type: "interrupt",
		Interrupts: []interrupt{{ID: b.ApprovalID, Reason: "input_required", Message: render.Connect(b, link),
			ToolCallID: b.ToolUseID, ExpiresAt: b.ExpiresAt, Metadata: map[string]any{"kind": b.What, "server": b.Server, "connect_url": link}}}}))
}

// interruptFrame ends the run at a question.
func (t *Encoder) interruptFrame(b event.InputRequired) frame {
	in := interrupt{ID: b.ApprovalID, Reason: "tool_call", Message: "The agent wants to do this, and waits for an approval.\n\n" +
		render.Approval(b), Schema: approvalSchema, ExpiresAt: b.ExpiresAt}
	if b.What == event.InputSecret {
		in.Reason, in.Message, in.Schema, in.ToolCallID = "input_required",
			strings.TrimSpace("The secret "+b.KeyName+" is needed.\n\n"+render.Agent(b.Reason)), nil, b.ToolUseID
		in.Metadata = map[string]any{"kind": b.What, "key_name": b.KeyName, "secret_url": server.AbsoluteURL(t.about.Base, b.SecretURL)}
	} else {
		in.ToolCallID = b.Operations[0].ToolUseID
		in.Metadata = map[string]any{"kind": b.What, "operations": b.Operations, "decide_url": server.AbsoluteURL(t.about.Base, b.DecideURL)}
		if b.SeparateApprover {
			in.Metadata["separate_approver"] = true
		}
		if len(b.OtherCalls) > 0 {
			in.Metadata["other_calls"] = b.OtherCalls
		}
	}
	return t.finishedFrame(outcome{Type: "interrupt", Interrupts: []interrupt{in}})
}

// finishRun ends the run, unless it continues with another turn.
func (t *Encoder) finishRun() []any {
	out := t.closeMessage()
	if next := t.reading.Then; next != nil {
		if t.error != nil { // an end of the run would also end what follows
			out = append(out, frame{Type: "CUSTOM", Name: "error", Value: *t.error})
		}
		t.reading, t.messages, t.result, t.error, t.cut = *next, 0, nil, nil, false
		return append(out, t.encodeRejected()...)
	}
	switch {
	case t.error == nil:
		return append(out, t.finishedFrame(outcome{Type: "success"}))
	case t.error.Code == event.Canceled && t.about.Versioned: // older clients throw at this outcome
		return append(out, t.finishedFrame(outcome{Type: "cancelled"}))
	}
	return append(out, t.Fail(*t.error)...)
}

func (t *Encoder) finishedFrame(o outcome) frame {
	f := frame{Type: "RUN_FINISHED", ThreadID: t.about.Thread, RunID: t.about.Run, Outcome: &o, Result: t.result, Usage: t.usage}
	if t.cut {
		f.Metadata = map[string]any{"finish_reason": event.FinishLength, "truncated": true}
	}
	return f
}

// Fail implements server.Encoder.
func (t *Encoder) Fail(e event.Error) []any { return []any{t.failedFrame(e)} }

func (t *Encoder) failedFrame(e event.Error) frame {
	return frame{Type: "RUN_ERROR", Message: e.Message, Code: string(e.Code), Usage: t.usage}
}

// approvalSchema is the schema of the answer to an approval.
var approvalSchema = json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"},` +
	`"pattern":{"type":"string","description":"with approved: allow calls like this from now on"},` +
	`"reason":{"type":"string","description":"without: why not, for the agent"}},"required":["approved"]}`)

// frame is an event of the protocol; which members it has depends on Type.
type frame struct {
	Type         string          `json:"type"`
	ThreadID     string          `json:"threadId,omitempty"`
	RunID        string          `json:"runId,omitempty"`
	Version      string          `json:"protocolVersion,omitempty"`
	MessageID    string          `json:"messageId,omitempty"`
	Role         string          `json:"role,omitempty"`
	ToolCallID   string          `json:"toolCallId,omitempty"`
	ToolCallName string          `json:"toolCallName,omitempty"`
	Delta        *string         `json:"delta,omitempty"`
	Content      *string         `json:"content,omitempty"`
	Name         string          `json:"name,omitempty"`
	Value        any             `json:"value,omitempty"`
	Outcome      *outcome        `json:"outcome,omitempty"`
	Result       json.RawMessage `json:"result,omitempty"`
	Message      string          `json:"message,omitempty"`
	Code         string          `json:"code,omitempty"`
	Usage        []tokenUsage    `json:"usage,omitempty"`
	Metadata     map[string]any  `json:"metadata,omitempty"`

	Messages *[]json.RawMessage `json:"messages,omitempty"` // a pointer, so that a thread without messages is encoded as an empty list
}

type outcome struct {
	Type       string      `json:"type"`
	Interrupts []interrupt `json:"interrupts,omitempty"`
}

type interrupt struct {
	ID         any             `json:"id"`
	Reason     string          `json:"reason"`
	Message    string          `json:"message,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	Schema     json.RawMessage `json:"responseSchema,omitempty"`
	ExpiresAt  time.Time       `json:"expiresAt"`
	Metadata   map[string]any  `json:"metadata,omitempty"`
}

type tokenUsage struct {
	Model  string `json:"model"`
	Input  int64  `json:"inputTokens"`
	Output int64  `json:"outputTokens"`
	Total  int64  `json:"totalTokens"`
}
