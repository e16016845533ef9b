package openaiapi

import (
	"net/http"

	"github.com/parley-server/parley/internal/dialect"
	"github.com/parley-server/parley/internal/event"
)

// Responding says a completion in the words of the Responses API: one message with one text.
type Responding struct {
	*Telling
	previous string // id of the response before; "": none
	n        int    // events so far
}

// NewResponding makes a projection.
func NewResponding(about About, previous string) *Responding {
	return &Responding{Telling: NewTelling(about), previous: previous}
}

// Begin implements dialect.Projection.
func (p *Responding) Begin() []any {
	p.Telling.Begin()
	return []any{
		p.event("response.created", "response", p.response("in_progress")),
		p.event("response.in_progress", "response", p.response("in_progress")),
		p.event("response.output_item.added", "output_index", 0, "item", p.item("in_progress", []any{})),
		p.event("response.content_part.added", "item_id", p.itemID(), "output_index", 0, "content_index", 0, "part", part("")),
	}
}

// Row implements dialect.Projection.
func (p *Responding) Row(row dialect.Row) []any { return p.say(p.Telling.Row(row)) }

// Say is an answer that no row stands for.
func (p *Responding) Say(text string) []any { return p.say(p.Telling.Say(text)) }

// Fail implements dialect.Projection.
func (p *Responding) Fail(e event.Error) []any { return p.say(p.Telling.Fail(e)) }

// Completion is the response in one piece, with its status.
func (p *Responding) Completion() (status int, answer any) {
	if status, answer = p.Telling.Completion(); status != http.StatusOK {
		return status, answer
	}
	return status, p.response(p.status())
}

// say translates what a completion would say.
func (p *Responding) say(frames []any) (out []any) {
	at := []any{"item_id", p.itemID(), "output_index", 0, "content_index", 0}
	for _, f := range frames {
		switch f := f.(type) {
		case failure:
			out = append(out, p.event("response.failed", "response", p.response("failed")))
		case chunk:
			for _, c := range f.Choices {
				if c.Delta.Content != nil {
					out = append(out, p.event("response.output_text.delta", append(at, "delta", *c.Delta.Content, "logprobs", []any{})...))
				}
				if c.FinishReason == nil {
					continue
				}
				text, status := p.content.String(), p.status()
				out = append(out,
					p.event("response.output_text.done", append(at, "text", text, "logprobs", []any{})...),
					p.event("response.content_part.done", append(at, "part", part(text))...),
					p.event("response.output_item.done", "output_index", 0, "item", p.item(status, []any{part(text)})),
					p.event("response."+status, "response", p.response(status)))
			}
		}
	}
	return out
}

// status is how the response ended.
func (p *Responding) status() string {
	if p.reason == "content_filter" {
		return "incomplete"
	}
	return "completed"
}

// event makes an event of a type, with members in pairs.
func (p *Responding) event(kind string, members ...any) map[string]any {
	e := map[string]any{"type": kind, "sequence_number": p.n}
	p.n++
	for i := 0; i < len(members); i += 2 {
		e[members[i].(string)] = members[i+1]
	}
	return e
}

func (p *Responding) itemID() string { return "msg_" + p.about.ID[len(responsePrefix):] }

func (p *Responding) item(status string, content []any) map[string]any {
	return map[string]any{"type": "message", "id": p.itemID(), "status": status, "role": "assistant", "content": content}
}

func part(text string) map[string]any {
	return map[string]any{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

// response is the response as it stands.
func (p *Responding) response(status string) map[string]any {
	r := map[string]any{
		"id": p.about.ID, "object": "response", "created_at": p.about.Created, "status": status, "model": p.about.Model, "output": []any{},
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": map[string]any{}, "parallel_tool_calls": false, "temperature": nil,
		"tool_choice": "none", "tools": []any{}, "top_p": nil, "previous_response_id": nil, "usage": nil, "session_id": p.about.Session,
	}
	if p.previous != "" {
		r["previous_response_id"] = p.previous
	}
	switch status {
	case "failed":
		r["error"] = map[string]any{"code": p.error.Code, "message": p.error.Message}
	case "incomplete":
		r["incomplete_details"] = map[string]any{"reason": "content_filter"}
	}
	if status == "completed" || status == "incomplete" {
		r["output"] = []any{p.item(status, []any{part(p.content.String())})}
		r["usage"] = map[string]any{"input_tokens": p.usage.Prompt, "output_tokens": p.usage.Completion, "total_tokens": p.usage.Total,
			"input_tokens_details": map[string]any{"cached_tokens": 0}, "output_tokens_details": map[string]any{"reasoning_tokens": 0}}
	}
	return r
}
