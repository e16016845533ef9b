package openai

import (
	"encoding/json"
	"regexp"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/provider"
)

// failed marks the result of a failed call; the protocol has no field for it.
const failed = "Error: "

// reasoning matches OpenAI's models that reject a temperature.
var reasoning = regexp.MustCompile(`^(o\d|gpt-5)`)

func (m *Model) requestParams(req model.Request) chatRequest {
	p := chatRequest{
		Model: m.service.Model, ReasoningEffort: req.Effort, Stream: true, StreamOptions: streamOptions{IncludeUsage: true},
		Stop: req.Options.Stop, Seed: req.Options.Seed,
	}
	if !m.official || !reasoning.MatchString(m.service.Model) {
		p.Temperature, p.TopP = req.Options.Temperature, req.Options.TopP
	}
	if req.System != "" {
		p.Messages = append(p.Messages, chatMessage{Role: "system", Content: req.System})
	}
	for _, msg := range provider.Messages(req) {
		p.Messages = append(p.Messages, message(msg))
	}
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, convertTool(t))
	}
	if len(p.Tools) > 0 && req.MustCall {
		p.ToolChoice = "required"
	}
	if len(p.Tools) > 0 && req.OneCall {
		p.ParallelToolCalls = new(false)
	}
	// OpenAI's reasoning models reject the old name, many other servers ignore the new one.
	if n := max(req.MaxTokens, 0); m.official {
		p.MaxCompletionTokens, p.PromptCacheKey = n, req.CacheKey
	} else {
		p.MaxTokens = n
	}
	return p
}

func message(msg model.Message) chatMessage {
	switch msg.Role {
	case model.Assistant:
		a := chatMessage{Role: "assistant"}
		if msg.Text != "" || len(msg.Calls) == 0 {
			a.Content = msg.Text
		}
		for _, c := range msg.Calls {
			call := functionCall{ID: provider.CallID(c.ID), Type: "function"}
			call.Function.Name = provider.ToolName(c.Tool)
			call.Function.Arguments = string(provider.Arguments(c.Input))
			a.ToolCalls = append(a.ToolCalls, call)
		}
		return a
	case model.ToolRole:
		text := msg.Text
		if msg.Failed {
			text = failed + text
		}
		return chatMessage{Role: "tool", Content: text, ToolCallID: provider.CallID(msg.CallID)}
	default:
		msg = msg.WithoutFiles() // servers differ; the Responses API takes them
		if len(msg.Images) > 0 {
			return chatMessage{Role: "user", Content: illustrated(msg)}
		}
		return chatMessage{Role: "user", Content: msg.Text}
	}
}

// illustrated returns a message with its images, which are sent inside it.
func illustrated(msg model.Message) []contentPart {
	var parts []contentPart
	if msg.Text != "" {
		parts = append(parts, contentPart{Type: "text", Text: msg.Text})
	}
	for _, i := range msg.Images {
		parts = append(parts, contentPart{Type: "image_url", ImageURL: &imageURL{
			URL: provider.DataURL(i.MIME, i.Data),
		}})
	}
	return parts
}

func convertTool(t model.Tool) functionTool {
	f := function{Name: t.Name, Description: t.Description}
	if json.Unmarshal(provider.FormOf(t.Schema).Schema, &f.Parameters) != nil || f.Parameters == nil {
		f.Parameters = map[string]json.RawMessage{}
	}
	return functionTool{Type: "function", Function: f}
}
