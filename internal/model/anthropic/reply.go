package anthropic

import (
	"strings"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/provider"
)

// reply assembles one streamed reply. It ignores blocks that are neither text nor calls, such as
// thinking.
type reply struct {
	name     func(id string) string
	forms    map[string]provider.Form // forms of the tools, by name
	calls    []*call
	at       map[int64]*call // by index of the content block
	stop     anthropic.StopReason
	complete bool
	counted  bool
	usage    anthropic.MessageDeltaUsage
	bound    provider.Bound

	requestID string
}

type call struct {
	id, tool string
	initial  string // the input, if the block began with it
	input    strings.Builder
}

func newReply(req model.Request) *reply {
	return &reply{name: provider.CallIDs(req), forms: provider.Forms(req.Tools), at: map[int64]*call{}}
}

// addEvent adds an event and returns the text in it.
func (r *reply) addEvent(ev anthropic.MessageStreamEventUnion) (text string) {
	switch ev.Type {
	case "message_start":
		if u := ev.Message.Usage; ev.Message.JSON.Usage.Valid() {
			r.counted = true
			r.usage.InputTokens, r.usage.OutputTokens = u.InputTokens, u.OutputTokens
			r.usage.CacheReadInputTokens = u.CacheReadInputTokens
			r.usage.CacheCreationInputTokens = u.CacheCreationInputTokens
		}
	case "content_block_start":
		switch b := ev.ContentBlock; b.Type {
		case "text":
			r.bound.AddText(b.Text)
			return b.Text
		case "tool_use":
			c := &call{id: b.ID, tool: b.Name, initial: b.JSON.Input.Raw()}
			r.at[ev.Index] = c
			r.calls = append(r.calls, c)
			r.bound.AddCall()
			r.bound.AddArguments(c.initial, len(c.initial))
		}
	case "content_block_delta":
		switch ev.Delta.Type {
		case "text_delta":
			r.bound.AddText(ev.Delta.Text)
			return ev.Delta.Text
		case "input_json_delta":
			if c := r.at[ev.Index]; c != nil {
				r.bound.AddArguments(ev.Delta.PartialJSON, c.input.Len()+len(ev.Delta.PartialJSON))
				c.input.WriteString(ev.Delta.PartialJSON)
			}
		}
	case "message_delta":
		if ev.Delta.StopReason != "" {
			r.stop = ev.Delta.StopReason
		}
		r.count(ev)
	case "message_stop":
		r.complete = true
	}
	return ""
}

// count adds the final numbers, which repeat the first ones only in part.
func (r *reply) count(ev anthropic.MessageStreamEventUnion) {
	if !ev.JSON.Usage.Valid() {
		return
	}
	r.counted = true
	u := ev.Usage
	r.usage.OutputTokens = max(r.usage.OutputTokens, u.OutputTokens)
	r.usage.InputTokens = max(r.usage.InputTokens, u.InputTokens)
	r.usage.CacheReadInputTokens = max(r.usage.CacheReadInputTokens, u.CacheReadInputTokens)
	r.usage.CacheCreationInputTokens = max(r.usage.CacheCreationInputTokens, u.CacheCreationInputTokens)
}

// finalChunks returns the calls and the last chunk.
func (r *reply) finalChunks() []model.Chunk {
	last := model.Chunk{RequestID: r.requestID}
	switch {
	case r.stop == anthropic.StopReasonRefusal:
		last.Stop = model.StopRefused
	case r.stop == anthropic.StopReasonMaxTokens || r.stop == anthropic.StopReasonModelContextWindowExceeded:
		last.Stop = model.StopLength
	case len(r.calls) > 0:
		last.Stop = model.StopTools
	default:
		last.Stop = model.StopEnd
	}
	if r.counted {
		// Anthropic counts input that was read from its cache or written to it separately.
		u := r.usage
		last.Usage = &model.Usage{
			InputTokens:      u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens,
			CachedTokens:     u.CacheReadInputTokens,
			CacheWriteTokens: u.CacheCreationInputTokens,
			OutputTokens:     u.OutputTokens,
		}
	}
	var chunks []model.Chunk
	if last.Stop == model.StopTools {
		for _, c := range r.calls {
			written := c.input.String()
			if written == "" {
				written = c.initial
			}
			chunks = append(chunks, model.Chunk{Call: &event.ToolCall{
				ID: r.name(c.id), Tool: c.tool, Input: r.forms[c.tool].Value(model.Input(written)),
			}})
		}
	}
	return append(chunks, last)
}
