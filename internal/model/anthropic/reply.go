package anthropic

import (
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/provider"
)

// reply assembles one streamed reply. It ignores blocks other than text, thinking and calls.
type reply struct {
	service  provider.Service
	name     func(id string) string
	forms    map[string]provider.Form // forms of the tools, by name
	calls    []*call
	at       map[int64]*call // by index of the content block
	stop     string
	complete bool
	counted  bool
	usage    usage
	bound    provider.Bound

	requestID string
	model     string // the provider's name of the model

	echo     string // blanks at the end of the beginning that the model continues: it may repeat them
	text     bool   // there was text
	thinking map[int64]*thought
	thoughts []*thought
	broke    bool // the next thinking is another block than the one before it
	shown    bool // there was thinking
}

// thought is a block of thinking, and its place.
type thought struct {
	kind, data          string
	thinking, signature strings.Builder
	afterText           bool
	calls               int
}

type call struct {
	id, tool string
	initial  string // the input, if the block began with it
	input    strings.Builder
}

func (m *Model) newReply(req model.Request, p params) *reply {
	r := &reply{service: m.service, name: provider.CallIDs(req), forms: provider.Forms(req.Tools), at: map[int64]*call{},
		thinking: map[int64]*thought{}}
	if m.prefills(req, p.Thinking) {
		r.echo = req.Partial[len(strings.TrimRight(req.Partial, blanks)):]
	}
	return r
}

// addEvent adds an event and returns the text in it, and the summary of the thinking.
func (r *reply) addEvent(ev streamEvent) (text, summary string) {
	switch ev.Type {
	case "message_start":
		r.model = provider.ModelName(ev.Message.Model)
		if u := ev.Message.Usage; u != nil {
			r.counted, r.usage = true, *u
		}
	case "content_block_start":
		switch b := ev.ContentBlock; b.Type {
		case "text":
			return r.addText(b.Text), ""
		case "thinking", "redacted_thinking":
			t := &thought{kind: b.Type, data: b.Data, afterText: r.text, calls: len(r.calls)}
			r.thinking[ev.Index] = t
			r.thoughts = append(r.thoughts, t)
			r.broke = r.shown
			return "", r.addThinking(t, b.Thinking, b.Signature)
		case "tool_use":
			c := &call{id: b.ID, tool: b.Name, initial: string(b.Input)}
			r.at[ev.Index] = c
			r.calls = append(r.calls, c)
			r.bound.AddCall()
			r.bound.AddArguments(c.initial, len(c.initial))
		}
	case "content_block_delta":
		switch ev.Delta.Type {
		case "text_delta":
			return r.addText(ev.Delta.Text), ""
		case "thinking_delta", "signature_delta":
			if t := r.thinking[ev.Index]; t != nil {
				return "", r.addThinking(t, ev.Delta.Thinking, ev.Delta.Signature)
			}
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
	return "", ""
}

// addThinking adds a piece of thinking and returns its text. A block begins a paragraph.
func (r *reply) addThinking(t *thought, thinking, signature string) string {
	r.bound.AddReasoning(len(thinking) + len(signature) + len(t.data))
	t.thinking.WriteString(thinking)
	t.signature.WriteString(signature)
	if thinking == "" {
		return ""
	}
	if r.broke {
		thinking = event.StepBreak + thinking
	}
	r.shown, r.broke = true, false
	return thinking
}

// addText counts text and returns what is new in it.
func (r *reply) addText(text string) string {
	r.bound.AddText(text)
	r.text = r.text || text != ""
	for r.echo != "" && text != "" {
		if text[0] != r.echo[0] {
			r.echo = ""
			break
		}
		text, r.echo = text[1:], r.echo[1:]
	}
	return text
}

// count adds the final numbers, which repeat the first ones only in part.
func (r *reply) count(ev streamEvent) {
	u := ev.Usage
	if u == nil {
		return
	}
	r.counted = true
	r.usage.OutputTokens = max(r.usage.OutputTokens, u.OutputTokens)
	r.usage.InputTokens = max(r.usage.InputTokens, u.InputTokens)
	r.usage.CacheReadInputTokens = max(r.usage.CacheReadInputTokens, u.CacheReadInputTokens)
	r.usage.CacheCreationInputTokens = max(r.usage.CacheCreationInputTokens, u.CacheCreationInputTokens)
}

// finalChunks returns the calls and the last chunk.
func (r *reply) finalChunks() []model.Chunk {
	last := model.Chunk{RequestID: r.requestID, Model: r.model}
	switch {
	case r.stop == "refusal":
		last.Stop = model.StopRefused
	case r.stop == "max_tokens" || r.stop == "model_context_window_exceeded":
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
	for _, t := range r.thoughts {
		if item := r.service.NewReasoning(t.afterText, t.calls, thinkingBlock{t.kind, t.thinking.String(), t.signature.String(),
			t.data}); item != nil {
			chunks = append(chunks, model.Chunk{Reasoning: item})
		}
	}
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
