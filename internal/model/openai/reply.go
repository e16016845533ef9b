package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/provider"
)

// reply assembles one streamed reply.
type reply struct {
	name    func(id string) string
	forms   map[string]provider.Form // forms of the tools, by name
	calls   []*call                  // in the order in which they began
	at      map[looseInt]*call       // the call that an index refers to now
	finish  string                   // the server's finish reason, "" until it arrives
	refused bool
	usage   *model.Usage
	bound   provider.Bound

	requestID string
	model     string // the server's name of the model
}

type call struct {
	id, tool  string
	arguments strings.Builder
}

func newReply(req model.Request) *reply {
	return &reply{name: provider.CallIDs(req), forms: provider.Forms(req.Tools), at: map[looseInt]*call{}}
}

// next implements incoming.
func (r *reply) next(s *chunkStream) (model.Chunk, error) {
	r.requestID = s.requestID
	chunk, err := s.nextChunk()
	if err != nil {
		return model.Chunk{}, err
	}
	return model.Chunk{Text: r.addChunk(chunk)}, nil
}

func (r *reply) limits() *provider.Bound { return &r.bound }

// outcome decides whether the reply is complete. It is complete once the server sent a finish
// reason, even if the connection broke before the usage arrived: a retry would repeat a complete
// answer.
func (r *reply) outcome(ctx context.Context, m *Model, err error) error {
	switch {
	case ctx.Err() == nil && r.finish == "error": // some gateways end a reply this way if it failed upstream
		return m.service.Reported(nil)
	case ctx.Err() == nil && r.finish != "":
		return nil
	case err == nil:
		err = m.service.Lost(io.ErrUnexpectedEOF)
	}
	return m.service.Outcome(ctx, err)
}

// addChunk adds a chunk and returns the text in it.
func (r *reply) addChunk(c chatChunk) (text string) {
	r.model = cmp.Or(provider.ModelName(string(c.Model)), r.model)
	if u := parseUsage(c.Usage); u != nil {
		r.usage = u // the last one counts: some servers send a running total
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		text += string(choice.Delta.Content)
		if choice.Delta.Refusal != "" {
			text += string(choice.Delta.Refusal)
			r.refused = true
		}
		for _, d := range choice.Delta.ToolCalls {
			c := r.callOf(d)
			piece := string(d.Function.Arguments)
			r.bound.AddArguments(piece, c.arguments.Len()+len(piece))
			c.arguments.WriteString(piece)
		}
		if choice.FinishReason != "" {
			r.finish = string(choice.FinishReason)
		}
	}
	r.bound.AddText(text)
	return text
}

// parseUsage returns the usage in raw, or nil if there is none.
func parseUsage(raw json.RawMessage) *model.Usage {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	var u chunkUsage
	_ = json.Unmarshal(raw, &u) // fields of the wrong type count as absent
	return &model.Usage{
		InputTokens:  int64(u.PromptTokens),
		CachedTokens: int64(u.PromptTokensDetails.CachedTokens),
		OutputTokens: int64(u.CompletionTokens),
	}
}

// callOf finds the call that a delta belongs to: the one at its index, unless the delta has another
// id. Some servers send all calls with index 0.
func (r *reply) callOf(d callDelta) *call {
	c := r.at[d.Index]
	if c == nil || d.ID != "" && c.id != "" && string(d.ID) != c.id {
		c = new(call)
		r.at[d.Index] = c
		r.calls = append(r.calls, c)
		r.bound.AddCall()
	}
	if c.id == "" {
		c.id = string(d.ID)
	}
	if c.tool == "" {
		c.tool = string(d.Function.Name)
	}
	return c
}

// finalChunks returns the calls and the last chunk. It accepts servers that end a reply with calls
// as if it were text.
func (r *reply) finalChunks() []model.Chunk {
	last := model.Chunk{Usage: r.usage, RequestID: r.requestID, Model: r.model}
	switch {
	case r.finish == "content_filter":
		last.Stop = model.StopRefused
	case r.finish == "length":
		last.Stop = model.StopLength
	case len(r.calls) > 0:
		last.Stop = model.StopTools
	case r.refused:
		last.Stop = model.StopRefused
	default:
		last.Stop = model.StopEnd
	}
	var chunks []model.Chunk
	if last.Stop == model.StopTools {
		for _, c := range r.calls {
			chunks = append(chunks, model.Chunk{Call: &event.ToolCall{
				ID: r.name(c.id), Tool: c.tool, Input: r.forms[c.tool].Value(model.Input(c.arguments.String())),
			}})
		}
	}
	return append(chunks, last)
}
