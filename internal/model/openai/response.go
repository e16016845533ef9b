package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/provider"
)

// responseEvent is one event of the stream. Its members depend on Type.
type responseEvent struct {
	Type        looseString     `json:"type"`
	Delta       looseString     `json:"delta"`
	OutputIndex looseInt        `json:"output_index"`
	Item        outputItem      `json:"item"`
	Response    json.RawMessage `json:"response"`
}

// outputItem is an item of a reply: a message, a call or reasoning.
type outputItem struct {
	Type      looseString     `json:"type"`
	ID        string          `json:"id"`
	CallID    looseString     `json:"call_id"`
	Name      looseString     `json:"name"`
	Arguments looseString     `json:"arguments"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
}

// reasoningItem is an item of reasoning as the model gets it back.
type reasoningItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id,omitempty"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
}

// nextEvent returns the next event of a response, or io.EOF at the end of the stream. Fields of the
// wrong type count as absent.
func (s *chunkStream) nextEvent() (ev responseEvent, err error) {
	frame, err := s.frames.Next()
	if err != nil {
		return ev, err
	}
	if bytes.HasPrefix(frame.Data, done) {
		return ev, io.EOF
	}
	err = json.Unmarshal(frame.Data, &ev)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		err = nil
	}
	switch {
	case err != nil:
	case ev.Type == "error":
		err = &reportedError{frame.Data}
	case ev.Type == "response.failed":
		err = &reportedError{ev.Response}
	}
	return ev, err
}

// response assembles one streamed reply of the Responses API.
type response struct {
	service   provider.Service
	name      func(id string) string
	forms     map[string]provider.Form // forms of the tools, by name
	calls     []*call
	at        map[looseInt]*call // by index of the item
	reasoning []*model.Reasoning
	text      bool   // there was text
	status    string // why the reply ended, "" until it did
	refused   bool
	usage     *model.Usage
	bound     provider.Bound
	requestID string
	model     string // the server's name of the model

	resumable bool   // the response runs in the background
	id        string // with which it can be read again; "": it cannot
	ended     bool   // it has failed at the provider
	summaries int    // parts of summaries so far
}

func (m *Model) newResponse(req model.Request) *response {
	return &response{resumable: m.background, id: req.Resume, service: m.service, name: provider.CallIDs(req),
		forms: provider.Forms(req.Tools), at: map[looseInt]*call{}}
}

// next implements incoming. Only the last event completes a reply, and none follows it.
func (r *response) next(s *chunkStream) (model.Chunk, error) {
	r.requestID = s.requestID
	if r.status != "" {
		return model.Chunk{}, io.EOF
	}
	ev, err := s.nextEvent()
	if _, failed := errors.AsType[*reportedError](err); failed {
		r.id, r.ended = "", true // it would fail again
	}
	if err != nil {
		return model.Chunk{}, err
	}
	return r.addEvent(ev), nil
}

func (r *response) limits() *provider.Bound { return &r.bound }

func (r *response) outcome(ctx context.Context, m *Model, err error) error {
	if err == nil && r.status == "" {
		err = m.service.Lost(io.ErrUnexpectedEOF)
	}
	err = m.service.Outcome(ctx, err)
	if known, ok := errors.AsType[*model.Error](err); ok && (r.ended || r.id != "" && known.Retryable) {
		described := *known
		described.Resumable, described.Ended = !r.ended, r.ended
		return &described
	}
	return err
}

// addEvent adds an event and returns the text in it, or the summary of reasoning, or the id of the
// response.
func (r *response) addEvent(ev responseEvent) (c model.Chunk) {
	switch ev.Type {
	case "response.output_text.delta", "response.refusal.delta":
		c.Text = string(ev.Delta)
		r.text = r.text || c.Text != ""
		r.refused = r.refused || ev.Type == "response.refusal.delta"
		r.bound.AddText(c.Text)
	case "response.created":
		c.Response = r.begin(ev)
	case "response.reasoning_summary_part.added":
		if r.summaries++; r.summaries > 1 {
			c.Summary = event.StepBreak
		}
	case "response.reasoning_summary_text.delta":
		c.Summary = string(ev.Delta)
		r.bound.AddReasoning(len(c.Summary))
	case "response.output_item.added", "response.output_item.done":
		r.addItem(ev)
	case "response.function_call_arguments.delta":
		if open := r.at[ev.OutputIndex]; open != nil {
			open.add(&r.bound, string(ev.Delta))
		}
	case "response.completed", "response.incomplete":
		r.finish(ev)
	}
	return c
}

// begin notes the id of a response that can be read again, and returns it if it is new.
func (r *response) begin(ev responseEvent) string {
	var begun struct {
		ID string `json:"id"`
	}
	if !r.resumable || r.id != "" || json.Unmarshal(ev.Response, &begun) != nil || len(begun.ID) > maxID {
		return ""
	}
	r.id = begun.ID
	return r.id
}

// maxID is the length in bytes of the longest id of a response.
const maxID = 256

// addItem adds an item that begins or ends.
func (r *response) addItem(ev responseEvent) {
	ended := ev.Type == "response.output_item.done"
	switch ev.Item.Type {
	case "reasoning":
		if ended && ev.Item.Encrypted != "" {
			r.bound.AddReasoning(len(ev.Item.Encrypted) + len(ev.Item.Summary))
			r.addReasoning(ev.Item)
		}
	case "function_call":
		c := r.at[ev.OutputIndex]
		if c == nil {
			c = &call{id: string(ev.Item.CallID), tool: string(ev.Item.Name)}
			r.at[ev.OutputIndex] = c
			r.calls = append(r.calls, c)
			r.bound.AddCall()
		}
		if ended && c.arguments.Len() == 0 {
			c.add(&r.bound, string(ev.Item.Arguments))
		}
	}
}

func (r *response) addReasoning(i outputItem) {
	if len(i.Summary) == 0 || i.Summary[0] != '[' {
		i.Summary = json.RawMessage("[]")
	}
	item := reasoningItem{"reasoning", i.ID, i.Summary, i.Encrypted}
	if kept := r.service.NewReasoning(r.text, len(r.calls), item); kept != nil {
		r.reasoning = append(r.reasoning, kept)
	}
}

// add adds a piece of the arguments.
func (c *call) add(b *provider.Bound, piece string) {
	b.AddArguments(piece, c.arguments.Len()+len(piece))
	c.arguments.WriteString(piece)
}

// finish notes how the reply ended, and its usage.
func (r *response) finish(ev responseEvent) {
	var end struct {
		Incomplete struct {
			Reason looseString `json:"reason"`
		} `json:"incomplete_details"`
		Model looseString `json:"model"`
		Usage *struct {
			InputTokens  looseInt `json:"input_tokens"`
			OutputTokens looseInt `json:"output_tokens"`
			Details      struct {
				CachedTokens looseInt `json:"cached_tokens"`
			} `json:"input_tokens_details"`
		} `json:"usage"`
	}
	_ = json.Unmarshal(ev.Response, &end) // fields of the wrong type count as absent
	r.model = provider.ModelName(string(end.Model))
	r.status = "completed"
	if ev.Type == "response.incomplete" {
		r.status = "incomplete: " + string(end.Incomplete.Reason)
	}
	if u := end.Usage; u != nil {
		r.usage = &model.Usage{InputTokens: int64(u.InputTokens), CachedTokens: int64(u.Details.CachedTokens),
			OutputTokens: int64(u.OutputTokens)}
	}
}

// finalChunks returns the reasoning, the calls and the last chunk.
func (r *response) finalChunks() (chunks []model.Chunk) {
	last := model.Chunk{Usage: r.usage, RequestID: r.requestID, Model: r.model}
	switch {
	case strings.HasSuffix(r.status, "content_filter"):
		last.Stop = model.StopRefused
	case r.status != "completed":
		last.Stop = model.StopLength
	case len(r.calls) > 0:
		last.Stop = model.StopTools
	case r.refused:
		last.Stop = model.StopRefused
	default:
		last.Stop = model.StopEnd
	}
	for _, item := range r.reasoning {
		chunks = append(chunks, model.Chunk{Reasoning: item})
	}
	if last.Stop == model.StopTools {
		for _, c := range r.calls {
			chunks = append(chunks, model.Chunk{Call: &event.ToolCall{
				ID: r.name(c.id), Tool: c.tool, Input: r.forms[c.tool].Value(model.Input(c.arguments.String())),
			}})
		}
	}
	return append(chunks, last)
}
