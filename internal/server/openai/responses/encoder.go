package responses

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/parley-server/parley/internal/server/openai/chat"
)

// Encoder encodes a response, streamed or complete: one message with one part, which is a text, or
// a refusal if the answer must be JSON.
type Encoder struct {
	*chat.Projection
	thread Thread
	part   string // type of the open part; "": none
	closed bool   // the message is complete
	n      int    // events so far
}

// Thread is the predecessor of a response, and what the response repeats of its request.
type Thread struct {
	Previous     string          // id of the previous response; "": none
	Conversation string          // "": no name
	Metadata     json.RawMessage // of the request; nil: none
	Tools        json.RawMessage // likewise
	ToolChoice   json.RawMessage // likewise
}

// NewEncoder returns an encoder.
func NewEncoder(about chat.About, thread Thread) *Encoder {
	p := &Encoder{thread: thread}
	p.Projection = chat.NewProjection(about, p.encodePiece)
	return p
}

// occurrence is an event of a stream, which is named by its type.
type occurrence map[string]any

// Event implements server.NamedFrame.
func (o occurrence) Event() string {
	kind, _ := o["type"].(string)
	return kind
}

// Begin implements server.Encoder.
func (p *Encoder) Begin() []any {
	return append([]any{
		p.newEvent("response.created", "response", p.responseObject("in_progress")),
		p.newEvent("response.in_progress", "response", p.responseObject("in_progress")),
	}, p.Projection.Begin()...)
}

// Queued returns the response before its turn has run.
func (p *Encoder) Queued() any { return p.responseObject("queued") }

// Completion returns the complete response with its status.
func (p *Encoder) Completion() (status int, answer any) {
	if status, bad := p.Failed(); bad {
		return status, chat.Failure(*p.Error)
	}
	p.Shorten()
	return http.StatusOK, p.responseObject(p.finalStatus())
}

// encodePiece encodes a piece as events.
func (p *Encoder) encodePiece(piece chat.Piece) []any {
	switch {
	case piece.Error != nil:
		return append(p.endMessage(), p.newEvent("response.failed", "response", p.responseObject("failed")))
	case piece.Content != nil:
		members := p.partMembers("delta", *piece.Content, "logprobs", []any{})
		return append(p.openPart("output_text"), p.newEvent("response.output_text.delta", members...))
	case piece.Refusal != nil:
		return append(p.openPart("refusal"), p.newEvent("response.refusal.delta", p.partMembers("delta", *piece.Refusal)...))
	case piece.Call != nil:
		return append(p.endMessage(), p.encodeCall(*piece.Call)...)
	case piece.Finish != "":
		return p.endResponse()
	}
	return nil
}

// openPart begins the part, whose kind the first piece determines.
func (p *Encoder) openPart(kind string) []any {
	if p.part != "" {
		return nil
	}
	p.part = kind
	empty := map[string]any{"type": "output_text", "text": "", "annotations": []any{}, "logprobs": []any{}}
	if kind == "refusal" {
		empty = map[string]any{"type": "refusal", "refusal": ""}
	}
	return []any{
		p.newEvent("response.output_item.added", "output_index", 0, "item", p.outputItem("in_progress", []any{})),
		p.newEvent("response.content_part.added", p.partMembers("part", empty)...),
	}
}

// endMessage completes the message, if there is one.
func (p *Encoder) endMessage() (out []any) {
	if p.part == "" || p.closed {
		return nil
	}
	p.closed = true
	whole := p.wholePart()
	if p.part == "refusal" {
		out = append(out, p.newEvent("response.refusal.done", p.partMembers("refusal", p.Refusal.String())...))
	} else {
		out = append(out, p.newEvent("response.output_text.done", p.partMembers("text", p.Content.String(), "logprobs", []any{})...))
	}
	return append(out,
		p.newEvent("response.content_part.done", p.partMembers("part", whole)...),
		p.newEvent("response.output_item.done", "output_index", 0, "item", p.outputItem(p.itemStatus(p.finalStatus()), []any{whole})))
}

func (p *Encoder) endResponse() (out []any) {
	if len(p.Calls) == 0 { // an answer without text also has a part
		out = p.openPart("output_text")
	}
	status := p.finalStatus()
	out = append(out, p.endMessage()...)
	return append(out, p.newEvent("response."+status, "response", p.responseObject(status)))
}

// encodeCall encodes a call of the client's own tools as an item of its own.
func (p *Encoder) encodeCall(c chat.Call) []any {
	at := c.Index
	if p.part != "" {
		at++
	}
	members := func(members ...any) []any {
		return append([]any{"item_id", callItemID(c), "output_index", at}, members...)
	}
	return []any{
		p.newEvent("response.output_item.added", "output_index", at, "item", callItem(c, "in_progress", "")),
		p.newEvent("response.function_call_arguments.delta", members("delta", c.Arguments)...),
		p.newEvent("response.function_call_arguments.done", members("name", c.Name, "arguments", c.Arguments)...),
		p.newEvent("response.output_item.done", "output_index", at, "item", callItem(c, "completed", c.Arguments)),
	}
}

func callItemID(c chat.Call) string { return "fc_" + strings.TrimPrefix(c.ID, "call_") }

func callItem(c chat.Call, status, arguments string) map[string]any {
	return map[string]any{"type": "function_call", "id": callItemID(c), "call_id": c.ID, "name": c.Name, "arguments": arguments,
		"status": status}
}

// outputItems returns the message and the calls so far. A final answer without calls always has a
// message.
func (p *Encoder) outputItems(status string) []any {
	items := []any{}
	if isFinal(status) && len(p.Calls) == 0 || p.Content.Len()+p.Refusal.Len() > 0 {
		items = append(items, p.outputItem(p.itemStatus(status), []any{p.wholePart()}))
	}
	for _, c := range p.Calls {
		items = append(items, callItem(c, "completed", c.Arguments))
	}
	return items
}

// finalStatus returns the final status of the response.
func (p *Encoder) finalStatus() string {
	switch {
	case p.Finish == "content_filter" || p.Finish == "length":
		return "incomplete"
	case p.Finish == "" && p.Error != nil:
		return "failed"
	}
	return "completed"
}

// itemStatus returns the status of the message in a response with a status.
func (p *Encoder) itemStatus(status string) string {
	if isFinal(status) || status == "in_progress" {
		return status
	}
	return "incomplete"
}

// isFinal reports whether a response with a status has an answer.
func isFinal(status string) bool { return status == "completed" || status == "incomplete" }

// newEvent returns an event of a type, with members in pairs.
func (p *Encoder) newEvent(kind string, members ...any) occurrence {
	e := occurrence{"type": kind, "sequence_number": p.n}
	p.n++
	for i := 0; i < len(members); i += 2 {
		e[members[i].(string)] = members[i+1]
	}
	return e
}

// partMembers returns members that identify the part.
func (p *Encoder) partMembers(members ...any) []any {
	return append([]any{"item_id", p.itemID(), "output_index", 0, "content_index", 0}, members...)
}

func (p *Encoder) itemID() string { return "msg_" + p.ID[len(idPrefix):] }

func (p *Encoder) outputItem(status string, content []any) map[string]any {
	return map[string]any{"type": "message", "id": p.itemID(), "status": status, "role": "assistant", "content": content}
}

// wholePart returns the complete part.
func (p *Encoder) wholePart() map[string]any {
	if p.Refusal.Len() > 0 {
		return map[string]any{"type": "refusal", "refusal": p.Refusal.String()}
	}
	return map[string]any{"type": "output_text", "text": p.Content.String(), "annotations": []any{}, "logprobs": []any{}}
}

// responseObject returns the response so far.
func (p *Encoder) responseObject(status string) map[string]any {
	metadata := p.thread.Metadata
	if metadata == nil {
		metadata = json.RawMessage("{}")
	}
	r := map[string]any{
		"id": p.ID, "object": "response", "created_at": p.Created, "status": status, "model": p.Model,
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": metadata, "parallel_tool_calls": false, "temperature": nil,
		"tool_choice": "none", "tools": []any{}, "top_p": nil, "previous_response_id": nil, "usage": nil, "session_id": p.Session,
	}
	if p.thread.Tools != nil {
		r["tools"], r["tool_choice"], r["parallel_tool_calls"] = p.thread.Tools, "auto", true
		if p.thread.ToolChoice != nil {
			r["tool_choice"] = p.thread.ToolChoice
		}
	}
	if p.thread.Previous != "" {
		r["previous_response_id"] = p.thread.Previous
	}
	if p.thread.Conversation != "" {
		r["conversation"] = map[string]any{"id": p.thread.Conversation}
	}
	switch {
	case status == "failed":
		r["error"] = map[string]any{"code": p.Error.Code, "message": p.Error.Message}
	case p.Finish == "length":
		r["incomplete_details"] = map[string]any{"reason": "max_output_tokens"}
	case status == "incomplete":
		r["incomplete_details"] = map[string]any{"reason": p.Finish}
	}
	r["output"] = p.outputItems(status)
	if isFinal(status) {
		r["usage"] = p.usage()
	}
	return r
}

func (p *Encoder) usage() map[string]any {
	return map[string]any{"input_tokens": p.Tokens.Prompt, "output_tokens": p.Tokens.Completion,
		"total_tokens":         p.Tokens.Prompt + p.Tokens.Completion,
		"input_tokens_details": map[string]any{"cached_tokens": 0}, "output_tokens_details": map[string]any{"reasoning_tokens": 0}}
}
