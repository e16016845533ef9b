package openai

import (
	"encoding/json"
	"strings"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/provider"
)

// responseRequest is the body of POST /responses. The provider stores it only for Background.
type responseRequest struct {
	Model             string          `json:"model"`
	Instructions      string          `json:"instructions,omitempty"`
	Input             []any           `json:"input"` // inputItem, or raw reasoning
	Tools             []responseTool  `json:"tools,omitempty"`
	ToolChoice        any             `json:"tool_choice,omitempty"` // a function, or "required"
	ParallelToolCalls *bool           `json:"parallel_tool_calls,omitempty"`
	Temperature       *float64        `json:"temperature,omitempty"`
	TopP              *float64        `json:"top_p,omitempty"`
	MaxOutputTokens   int             `json:"max_output_tokens,omitempty"`
	Text              *responseText   `json:"text,omitempty"`
	Reasoning         *responseEffort `json:"reasoning,omitempty"`
	Include           []string        `json:"include,omitempty"`
	PromptCacheKey    string          `json:"prompt_cache_key,omitempty"`
	Background        bool            `json:"background,omitempty"` // needs Store
	Store             bool            `json:"store"`
	Stream            bool            `json:"stream"`
}

type responseEffort struct {
	Effort  string `json:"effort,omitempty"`
	Summary string `json:"summary,omitempty"`
}

type responseText struct {
	Format responseTextFormat `json:"format"`
}

type responseTextFormat struct {
	Type string `json:"type"`
	outputSchema
}

// responseTool offers a function. Strict is sent because its default is true.
type responseTool struct {
	Type string `json:"type"`
	function
	Strict bool `json:"strict"`
}

// inputItem is a message, a call or the result of one.
type inputItem struct {
	Type      string  `json:"type"`
	Role      string  `json:"role,omitempty"`
	Content   any     `json:"content,omitempty"` // a string or []inputPart
	CallID    string  `json:"call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments string  `json:"arguments,omitempty"`
	Output    *string `json:"output,omitempty"`
}

type inputPart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
	Filename string `json:"filename,omitempty"`
	FileData string `json:"file_data,omitempty"`
}

// encryptsReasoning reports whether OpenAI returns the reasoning of this model: the others reject
// the request for it.
func (m *Model) encryptsReasoning() bool {
	return reasoning.MatchString(m.service.Model) && !strings.Contains(m.service.Model, "-chat")
}

// encryptedReasoning is the name of the reasoning in a list of what a response shall include.
const encryptedReasoning = "reasoning.encrypted_content"

func (m *Model) responseParams(req model.Request) responseRequest {
	p := responseRequest{
		Model: m.service.Model, Instructions: req.System, Input: []any{}, MaxOutputTokens: max(req.MaxTokens, 0),
		PromptCacheKey: req.CacheKey, Stream: true,
	}
	if m.encryptsReasoning() {
		p.Include = []string{encryptedReasoning}
	} else {
		p.Temperature, p.TopP = req.Options.Temperature, req.Options.TopP
	}
	if req.Effort != "" {
		p.Reasoning = &responseEffort{Effort: req.Effort}
	}
	if req.Summaries && m.encryptsReasoning() {
		p.Reasoning = &responseEffort{Effort: req.Effort, Summary: "auto"}
	}
	if m.background && req.Output == nil { // a value is useless before it is complete
		p.Background, p.Store = true, true
	}
	for _, msg := range provider.Messages(req) {
		p.Input = append(p.Input, m.inputItems(msg)...)
	}
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, responseTool{Type: "function", function: convertTool(t).Function})
	}
	if len(p.Tools) > 0 && req.MustCall {
		p.ToolChoice = "required"
	}
	if len(p.Tools) > 0 && req.OneCall {
		p.ParallelToolCalls = new(false)
	}
	return p
}

func (m *Model) inputItems(msg model.Message) (items []any) {
	switch msg.Role {
	case model.Assistant:
		return m.replyItems(msg)
	case model.ToolRole:
		text := msg.Text
		if msg.Failed {
			text = failed + text
		}
		return []any{inputItem{Type: "function_call_output", CallID: provider.CallID(msg.CallID), Output: &text}}
	}
	var parts []inputPart
	if msg.Text != "" || len(msg.Images)+len(msg.Files) == 0 {
		parts = append(parts, inputPart{Type: "input_text", Text: msg.Text})
	}
	for _, i := range msg.Images {
		parts = append(parts, inputPart{Type: "input_image", ImageURL: provider.DataURL(i.MIME, i.Data)})
	}
	for _, f := range msg.Files {
		parts = append(parts, inputPart{Type: "input_file", Filename: f.Name, FileData: provider.DataURL(f.MIME, f.Data)})
	}
	return []any{inputItem{Type: "message", Role: "user", Content: parts}}
}

// replyItems returns a reply of the model as its items: reasoning stands where it stood.
func (m *Model) replyItems(msg model.Message) (items []any) {
	add := func(raw []json.RawMessage) {
		for _, item := range raw {
			items = append(items, item)
		}
	}
	add(m.service.ReasoningAt(msg, false, 0))
	if msg.Text != "" || len(msg.Calls) == 0 {
		items = append(items, inputItem{Type: "message", Role: "assistant", Content: msg.Text})
	}
	add(m.service.ReasoningAt(msg, true, 0))
	for i, c := range msg.Calls {
		items = append(items, inputItem{Type: "function_call", CallID: provider.CallID(c.ID), Name: provider.ToolName(c.Tool),
			Arguments: string(provider.Arguments(c.Input))})
		add(m.service.ReasoningAt(msg, true, i+1))
	}
	return items
}
