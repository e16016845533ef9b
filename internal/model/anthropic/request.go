package anthropic

import (
	"cmp"
	"strings"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/provider"
)

func (m *Model) requestParams(req model.Request) params {
	p := params{
		Model:     m.service.Model,
		MaxTokens: int64(cmp.Or(max(req.MaxTokens, 0), longest(m.service.Model))),
		Stream:    true,
	}
	m.addEffort(&p, req)
	p.Messages = m.convertMessages(m.continued(req, p.Thinking))
	if strings.TrimSpace(req.System) != "" {
		p.System = []block{textBlock(req.System)}
	}
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, toolParam{Name: t.Name, Description: t.Description, InputSchema: provider.FormOf(t.Schema).Schema})
	}
	m.addOptions(&p, req)
	addBreakpoints(&p)
	return p
}

// continued returns the conversation with the beginning of an interrupted reply at its end. The
// model continues it as its own text, if it can.
func (m *Model) continued(req model.Request, thinking *thinkingMode) []model.Message {
	if !m.prefills(req, thinking) {
		return provider.Messages(req)
	}
	return append(req.Messages[:len(req.Messages):len(req.Messages)], model.Message{Role: model.Assistant,
		Text: strings.TrimRight(req.Partial, blanks)})
}

// blanks are characters that a prefill cannot end with.
const blanks = " \t\r\n"

// prefills reports whether a reply is continued by a prefill: newer models and models of other
// vendors reject one, and so does a request with thinking or with a call that is forced.
func (m *Model) prefills(req model.Request, thinking *thinkingMode) bool {
	v := versionOf(m.service.Model)
	return v > 0 && v < thinksByEffort && strings.TrimSpace(req.Partial) != "" && thinking == nil && !req.MustCall && req.Output == nil
}

// maxTemperature is the protocol's maximum; OpenAI's is 2.
const maxTemperature = 1

// addOptions adds the options of the caller that the protocol has. It has no seed.
func (m *Model) addOptions(p *params, req model.Request) {
	samples := versionOf(m.service.Model) < fixedSampling && p.Thinking == nil // thinking allows no other
	if t := req.Options.Temperature; t != nil && samples {
		p.Temperature = new(min(*t, maxTemperature))
	}
	if t := req.Options.TopP; t != nil && req.Options.Temperature == nil && samples { // new models reject both
		p.TopP = t
	}
	p.StopSequences = req.Options.Stop
	if len(p.Tools) == 0 {
		return
	}
	switch {
	case req.MustCall:
		p.ToolChoice = &toolChoice{Type: "any", Single: req.OneCall}
	case req.OneCall:
		p.ToolChoice = &toolChoice{Type: "auto", Single: true}
	}
}

// longest returns the default limit of a reply. The protocol requires a number, and rejects one
// above the model's maximum.
func longest(name string) int {
	switch {
	case strings.HasPrefix(name, "claude-3-5-"), strings.HasPrefix(name, "claude-3-7-"):
		return 8192
	case strings.HasPrefix(name, "claude-3-"):
		return 4096
	case strings.HasPrefix(name, "claude-"):
		return 32_000
	default: // another vendor's model behind the same protocol
		return 8192
	}
}

// convertMessages merges adjacent messages of one role, because the protocol requires roles to
// alternate: the results of a step's calls and the user's text after them are one message. It drops
// blank texts, which the protocol rejects.
func (m *Model) convertMessages(history []model.Message) []message {
	out := []message{} // the protocol requires a list
	for _, msg := range history {
		role, content := roleUser, m.blocks(msg)
		if msg.Role == model.Assistant {
			role = roleAssistant
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, content...)
		} else if len(content) > 0 {
			out = append(out, message{Role: role, Content: content})
		}
	}
	return out
}

func (m *Model) blocks(msg model.Message) []block {
	if versionOf(m.service.Model) < readsFiles {
		msg = msg.WithoutFiles()
	}
	blank := strings.TrimSpace(msg.Text) == ""
	if msg.Role == model.ToolRole {
		result := block{Type: "tool_result", ToolUseID: provider.CallID(msg.CallID), IsError: msg.Failed}
		if !blank {
			result.Content = []block{textBlock(msg.Text)}
		}
		return []block{result}
	}
	var out []block
	for _, i := range msg.Images {
		out = append(out, block{Type: "image", Source: &source{"base64", i.MIME, i.Data}})
	}
	for _, f := range msg.Files {
		out = append(out, block{Type: "document", Title: f.Name, Source: &source{"base64", "application/pdf", f.Data}})
	}
	out = append(out, m.thinkingBlocks(msg, false, 0)...)
	if !blank {
		out = append(out, textBlock(msg.Text))
	}
	out = append(out, m.thinkingBlocks(msg, true, 0)...)
	for i, c := range msg.Calls {
		out = append(out, block{Type: "tool_use", ID: provider.CallID(c.ID), Name: provider.ToolName(c.Tool), Input: provider.Arguments(c.Input)})
		out = append(out, m.thinkingBlocks(msg, true, i+1)...)
	}
	return out
}

func textBlock(text string) block { return block{Type: "text", Text: text} }
