package completions

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/openai/chat"
)

// Encoder encodes a chat completion, streamed or complete.
type Encoder struct{ *chat.Projection }

// NewEncoder returns an encoder.
func NewEncoder(about chat.About) *Encoder {
	t := &Encoder{}
	t.Projection = chat.NewProjection(about, t.encode)
	return t
}

// Begin implements server.Encoder.
func (t *Encoder) Begin() []any {
	return append([]any{t.chunk(delta{Role: "assistant", Content: new("")}, nil)}, t.Projection.Begin()...)
}

// encode encodes a piece as chunks.
func (t *Encoder) encode(p chat.Piece) []any {
	switch {
	case p.Error != nil:
		return []any{chat.Failure(*p.Error), server.RawFrame("[DONE]")}
	case p.Call != nil:
		call := toolCall{Index: &p.Call.Index, ID: p.Call.ID, Type: "function", Function: callFunction{Name: p.Call.Name}}
		arguments := toolCall{Index: &p.Call.Index, Function: callFunction{Arguments: p.Call.Arguments}}
		return []any{t.chunk(delta{Calls: []toolCall{call}}, nil), t.chunk(delta{Calls: []toolCall{arguments}}, nil)}
	case p.Finish == "":
		return []any{t.chunk(delta{Content: p.Content, Refusal: p.Refusal, Reasoning: p.Reasoning}, nil)}
	}
	frames := []any{t.chunk(delta{}, &p.Finish)}
	if t.Usage {
		last := t.chunk(delta{}, nil)
		last.Choices, last.Usage = []choice{}, usageOf(t.Projection)
		frames = append(frames, last)
	}
	return append(frames, server.RawFrame("[DONE]"))
}

func (t *Encoder) chunk(d delta, reason *string) chunk {
	c := chunk{ID: t.ID, Object: "chat.completion.chunk", Created: t.Created, Model: t.Model, Session: t.Session,
		Choices: []choice{{Delta: d, FinishReason: reason}}}
	if t.Usage {
		c.Usage = (*usage)(nil)
	}
	return c
}

// Completion returns the complete answer with its status. It is called last.
func (t *Encoder) Completion() (status int, answer any) {
	if status, bad := t.Failed(); bad {
		return status, chat.Failure(*t.Error)
	}
	m := message{Role: "assistant", Reasoning: t.Reasoning.String()}
	if t.Refusal.Len() > 0 {
		m.Refusal = new(t.Refusal.String())
	} else {
		t.Shorten()
		if t.Content.Len() > 0 || len(t.Calls) == 0 {
			m.Content = new(t.Content.String())
		}
	}
	for _, c := range t.Calls {
		m.Calls = append(m.Calls, toolCall{ID: c.ID, Type: "function", Function: callFunction{c.Name, c.Arguments}})
	}
	return http.StatusOK, completion{ID: t.ID, Object: "chat.completion", Created: t.Created, Model: t.Model, Session: t.Session,
		Usage: *usageOf(t.Projection), Choices: [1]whole{{Message: m, FinishReason: t.Finish}}}
}

func usageOf(p *chat.Projection) *usage {
	return &usage{p.Tokens.Prompt, p.Tokens.Completion, p.Tokens.Prompt + p.Tokens.Completion}
}

// chunk is a piece of a streamed answer.
type chunk struct {
	ID      string    `json:"id"`
	Object  string    `json:"object"`
	Created int64     `json:"created"`
	Model   string    `json:"model"`
	Choices []choice  `json:"choices"`
	Usage   any       `json:"usage,omitempty"` // a *usage: null in all chunks but the last, if requested
	Session uuid.UUID `json:"session_id"`      // an extension
}

type choice struct {
	Index        int     `json:"index"`
	Delta        delta   `json:"delta"`
	FinishReason *string `json:"finish_reason"`
}

type delta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Refusal   *string    `json:"refusal,omitempty"`
	Reasoning string     `json:"reasoning_content,omitempty"` // the agent's activity, in the field of reasoning models
	Calls     []toolCall `json:"tool_calls,omitempty"`
}

type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
}

// completion is a complete answer.
type completion struct {
	ID      string    `json:"id"`
	Object  string    `json:"object"`
	Created int64     `json:"created"`
	Model   string    `json:"model"`
	Choices [1]whole  `json:"choices"`
	Usage   usage     `json:"usage"`
	Session uuid.UUID `json:"session_id"`
}

type whole struct {
	Index        int     `json:"index"`
	Message      message `json:"message"`
	LogProbs     *string `json:"logprobs"`
	FinishReason string  `json:"finish_reason"`
}

type message struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"` // nil: a refusal or calls instead
	Refusal   *string    `json:"refusal"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []toolCall `json:"tool_calls,omitempty"`
}

// toolCall is a call of the client's own tools. In a stream, its pieces have an index.
type toolCall struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function callFunction `json:"function"`
}

type callFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}
