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
	case p.Finish == "":
		return []any{t.chunk(delta{Content: p.Content, Refusal: p.Refusal, Reasoning: p.Reasoning}, nil)}
	}
	frames := []any{t.chunk(delta{}, &p.Finish)}
	if t.Usage {
		last := t.chunk(delta{}, nil)
		last.Choices, last.Usage = []choice{}, t.usage()
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
		m.Content = new(t.Content.String())
	}
	return http.StatusOK, completion{ID: t.ID, Object: "chat.completion", Created: t.Created, Model: t.Model, Session: t.Session, Usage: *t.usage(),
		Choices: [1]whole{{Message: m, FinishReason: t.Finish}}}
}

func (t *Encoder) usage() *usage {
	return &usage{t.Tokens.Prompt, t.Tokens.Completion, t.Tokens.Prompt + t.Tokens.Completion}
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
	Role      string  `json:"role,omitempty"`
	Content   *string `json:"content,omitempty"`
	Refusal   *string `json:"refusal,omitempty"`
	Reasoning string  `json:"reasoning_content,omitempty"` // the agent's activity, in the field of reasoning models
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
	Role      string  `json:"role"`
	Content   *string `json:"content"` // nil: a refusal instead
	Refusal   *string `json:"refusal"`
	Reasoning string  `json:"reasoning_content,omitempty"`
}
