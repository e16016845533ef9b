package openai

import (
	"net/http"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
)

// Responding encodes a completion for the Responses API: one message with one part, which is a
// text, or a refusal if the answer must be JSON.
type Responding struct {
	*Encoder
	thread Thread
	part   string // type of the open part; "": none
	n      int    // events so far
}

// Thread is the predecessor of a response.
type Thread struct {
	Previous     string // id of the previous response; "": none
	Conversation string // "": no name
}

// NewResponding returns an encoder.
func NewResponding(about About, thread Thread) *Responding {
	return &Responding{Encoder: NewEncoder(about), thread: thread}
}

// occurrence is an event of a stream, which is named by its type.
type occurrence map[string]any

// Event implements server.NamedFrame.
func (o occurrence) Event() string {
	kind, _ := o["type"].(string)
	return kind
}

// Begin implements server.Encoder.
func (p *Responding) Begin() []any {
	begun := p.Encoder.Begin()
	return append([]any{
		p.event("response.created", "response", p.response("in_progress")),
		p.event("response.in_progress", "response", p.response("in_progress")),
		p.event("response.output_item.added", "output_index", 0, "item", p.item("in_progress", []any{})),
	}, p.say(begun[1:])...) // the first piece is empty
}

// Row implements server.Encoder.
func (p *Responding) Row(row server.Row) []any { return p.say(p.Encoder.Row(row)) }

// Say ends the response with a text that is not an answer.
func (p *Responding) Say(text string) []any { return p.say(p.Encoder.Say(text)) }

// Fail implements server.Encoder.
func (p *Responding) Fail(e event.Error) []any { return p.say(p.Encoder.Fail(e)) }

// Completion returns the complete response with its status.
func (p *Responding) Completion() (status int, answer any) {
	if status, answer = p.Encoder.Completion(); status != http.StatusOK {
		return status, answer
	}
	return status, p.response(p.status())
}

// say translates the chunks of a completion.
func (p *Responding) say(frames []any) (out []any) {
	for _, f := range frames {
		switch f := f.(type) {
		case failure:
			out = append(out, p.event("response.failed", "response", p.response("failed")))
		case chunk:
			for _, c := range f.Choices {
				switch {
				case c.Delta.Content != nil:
					out = append(out, p.open("output_text")...)
					out = append(out, p.event("response.output_text.delta", p.at("delta", *c.Delta.Content, "logprobs", []any{})...))
				case c.Delta.Refusal != nil:
					out = append(out, p.open("refusal")...)
					out = append(out, p.event("response.refusal.delta", p.at("delta", *c.Delta.Refusal)...))
				}
				if c.FinishReason != nil {
					out = append(out, p.end()...)
				}
			}
		}
	}
	return out
}

// open begins the part, whose kind the first piece determines.
func (p *Responding) open(kind string) []any {
	if p.part != "" {
		return nil
	}
	p.part = kind
	empty := map[string]any{"type": "output_text", "text": "", "annotations": []any{}, "logprobs": []any{}}
	if kind == "refusal" {
		empty = map[string]any{"type": "refusal", "refusal": ""}
	}
	return []any{p.event("response.content_part.added", p.at("part", empty)...)}
}

func (p *Responding) end() []any {
	out := p.open("output_text") // an answer without text also has a part
	status, whole := p.status(), p.whole()
	if p.part == "refusal" {
		out = append(out, p.event("response.refusal.done", p.at("refusal", p.refusal.String())...))
	} else {
		out = append(out, p.event("response.output_text.done", p.at("text", p.content.String(), "logprobs", []any{})...))
	}
	return append(out,
		p.event("response.content_part.done", p.at("part", whole)...),
		p.event("response.output_item.done", "output_index", 0, "item", p.item(status, []any{whole})),
		p.event("response."+status, "response", p.response(status)))
}

// status returns the final status of the response.
func (p *Responding) status() string {
	if p.reason == "content_filter" || p.reason == "length" {
		return "incomplete"
	}
	return "completed"
}

// event returns an event of a type, with members in pairs.
func (p *Responding) event(kind string, members ...any) occurrence {
	e := occurrence{"type": kind, "sequence_number": p.n}
	p.n++
	for i := 0; i < len(members); i += 2 {
		e[members[i].(string)] = members[i+1]
	}
	return e
}

// at returns members that identify the part.
func (p *Responding) at(members ...any) []any {
	return append([]any{"item_id", p.itemID(), "output_index", 0, "content_index", 0}, members...)
}

func (p *Responding) itemID() string { return "msg_" + p.about.ID[len(responsePrefix):] }

func (p *Responding) item(status string, content []any) map[string]any {
	return map[string]any{"type": "message", "id": p.itemID(), "status": status, "role": "assistant", "content": content}
}

// whole returns the complete part.
func (p *Responding) whole() map[string]any {
	if p.refusal.Len() > 0 {
		return map[string]any{"type": "refusal", "refusal": p.refusal.String()}
	}
	return map[string]any{"type": "output_text", "text": p.content.String(), "annotations": []any{}, "logprobs": []any{}}
}

// response returns the response so far.
func (p *Responding) response(status string) map[string]any {
	r := map[string]any{
		"id": p.about.ID, "object": "response", "created_at": p.about.Created, "status": status, "model": p.about.Model, "output": []any{},
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": map[string]any{}, "parallel_tool_calls": false, "temperature": nil,
		"tool_choice": "none", "tools": []any{}, "top_p": nil, "previous_response_id": nil, "usage": nil, "session_id": p.about.Session,
	}
	if p.thread.Previous != "" {
		r["previous_response_id"] = p.thread.Previous
	}
	if p.thread.Conversation != "" {
		r["conversation"] = map[string]any{"id": p.thread.Conversation}
	}
	switch {
	case status == "failed":
		r["error"] = map[string]any{"code": p.error.Code, "message": p.error.Message}
	case p.reason == "length":
		r["incomplete_details"] = map[string]any{"reason": "max_output_tokens"}
	case status == "incomplete":
		r["incomplete_details"] = map[string]any{"reason": p.reason}
	}
	if status == "completed" || status == "incomplete" {
		r["output"] = []any{p.item(status, []any{p.whole()})}
		r["usage"] = map[string]any{"input_tokens": p.usage.Prompt, "output_tokens": p.usage.Completion, "total_tokens": p.usage.Total,
			"input_tokens_details": map[string]any{"cached_tokens": 0}, "output_tokens_details": map[string]any{"reasoning_tokens": 0}}
	}
	return r
}
