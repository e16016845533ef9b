package completions

import (
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/openai/chat"
	"github.com/parley-server/parley/internal/server/request"
)

// textFields are the fields of a completion of a text that have a meaning here.
var textFields = []string{"model", "prompt", "stream", "stream_options", "user", "n", "temperature", "top_p", "max_tokens", "stop", "seed"}

// TextHandler returns the handler of the older API for completions: the prompt is a message of the
// user.
func TextHandler(s chat.Service) chat.Handler {
	return func(w http.ResponseWriter, r *server.Request) error {
		body, raw, err := request.ReadChat(w, r.Request)
		if err != nil {
			return err
		}
		in := chat.Receive(body, raw, textFields)
		prompt, ok := onePrompt(in.Given["prompt"])
		if !ok {
			in.Type("/prompt", "string")
			return in.Err()
		}
		in.Keep(textFields)
		in.Given["messages"], _ = json.Marshal([]map[string]any{{"role": "user", "content": prompt}}) // of valid JSON
		r.Names["messages"], r.Names["command"] = "prompt", "prompt"
		return s.Answer(w, r, in, func(a chat.About, rd chat.Reply) chat.Encoder {
			a.ID = "cmpl-" + rd.Turn.String()
			return NewTextEncoder(a)
		})
	}
}

// onePrompt returns the only prompt of a request.
func onePrompt(raw json.RawMessage) (prompt json.RawMessage, ok bool) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) == 1 {
		raw = list[0]
	}
	return raw, len(raw) > 0 && raw[0] == '"'
}

// TextEncoder encodes a completion of a text, streamed or complete. It has no calls and no refusals:
// both are text.
type TextEncoder struct{ *chat.Projection }

// NewTextEncoder returns an encoder.
func NewTextEncoder(about chat.About) *TextEncoder {
	t := &TextEncoder{}
	t.Projection = chat.NewProjection(about, t.encode)
	return t
}

// encode encodes a piece as chunks.
func (t *TextEncoder) encode(p chat.Piece) []any {
	switch {
	case p.Error != nil:
		return []any{chat.Failure(*p.Error), server.RawFrame("[DONE]")}
	case p.Content != nil:
		return []any{t.chunk(*p.Content, nil)}
	case p.Refusal != nil:
		return []any{t.chunk(*p.Refusal, nil)}
	case p.Call != nil:
		return []any{t.chunk(p.Call.Arguments, nil)}
	case p.Finish == "":
		return nil
	}
	frames := []any{t.chunk("", &p.Finish)}
	if t.Usage {
		last := t.chunk("", nil)
		last.Choices, last.Usage = []textChoice{}, usageOf(t.Projection)
		frames = append(frames, last)
	}
	return append(frames, server.RawFrame("[DONE]"))
}

func (t *TextEncoder) chunk(text string, reason *string) textCompletion {
	c := textCompletion{ID: t.ID, Object: "text_completion", Created: t.Created, Model: t.Model, Session: t.Session,
		Choices: []textChoice{{Text: text, FinishReason: reason}}}
	if t.Usage {
		c.Usage = (*usage)(nil)
	}
	return c
}

// Completion returns the complete answer with its status. It is called last.
func (t *TextEncoder) Completion() (status int, answer any) {
	if status, bad := t.Failed(); bad {
		return status, chat.Failure(*t.Error)
	}
	t.Shorten()
	text := t.Content.String() + t.Refusal.String()
	for _, c := range t.Calls {
		text += c.Arguments
	}
	c := t.chunk(text, &t.Finish)
	c.Usage = usageOf(t.Projection)
	return http.StatusOK, c
}

// textCompletion is an answer, or a piece of one.
type textCompletion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []textChoice `json:"choices"`
	Usage   any          `json:"usage,omitempty"` // a *usage: null in all chunks but the last, if requested
	Session uuid.UUID    `json:"session_id"`      // an extension
}

type textChoice struct {
	Index        int     `json:"index"`
	Text         string  `json:"text"`
	LogProbs     *string `json:"logprobs"`
	FinishReason *string `json:"finish_reason"`
}
