package anthropic

import (
	"cmp"
	"encoding/base64"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/provider"
)

func (m *Model) requestParams(req model.Request) anthropic.MessageNewParams {
	p := anthropic.MessageNewParams{
		Model:     m.service.Model,
		MaxTokens: int64(cmp.Or(max(req.MaxTokens, 0), longest(m.service.Model))),
	}
	m.addEffort(&p, req)
	p.Messages = m.convertMessages(m.continued(req, p.Thinking))
	if strings.TrimSpace(req.System) != "" {
		p.System = []anthropic.TextBlockParam{{Text: req.System}}
	}
	for _, t := range req.Tools {
		tool := anthropic.ToolParam{
			Name:        t.Name,
			InputSchema: param.Override[anthropic.ToolInputSchemaParam](provider.FormOf(t.Schema).Schema),
		}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: &tool})
	}
	m.addOptions(&p, req)
	addBreakpoints(&p)
	return p
}

// continued returns the conversation with the beginning of an interrupted reply at its end. The
// model continues it as its own text, if it can.
func (m *Model) continued(req model.Request, thinking anthropic.ThinkingConfigParamUnion) []model.Message {
	if !m.prefills(req, thinking) {
		return provider.Messages(req)
	}
	return append(req.Messages[:len(req.Messages):len(req.Messages)], model.Message{Role: model.Assistant, Text: strings.TrimRight(req.Partial, blanks)})
}

// blanks are characters that a prefill cannot end with.
const blanks = " \t\r\n"

// prefills reports whether a reply is continued by a prefill: newer models and models of other
// vendors reject one, and so does a request with thinking or with a call that is forced.
func (m *Model) prefills(req model.Request, thinking anthropic.ThinkingConfigParamUnion) bool {
	v := versionOf(m.service.Model)
	return v > 0 && v < thinksByEffort && strings.TrimSpace(req.Partial) != "" && thinking.GetType() == nil && !req.MustCall && req.Output == nil
}

// maxTemperature is the protocol's maximum; OpenAI's is 2.
const maxTemperature = 1

// addOptions adds the options of the caller that the protocol has. It has no seed.
func (m *Model) addOptions(p *anthropic.MessageNewParams, req model.Request) {
	samples := versionOf(m.service.Model) < fixedSampling && p.Thinking.GetType() == nil // thinking allows no other
	if t := req.Options.Temperature; t != nil && samples {
		p.Temperature = param.NewOpt(min(*t, maxTemperature))
	}
	if t := req.Options.TopP; t != nil && req.Options.Temperature == nil && samples { // new models reject both
		p.TopP = param.NewOpt(*t)
	}
	p.StopSequences = req.Options.Stop
	if len(p.Tools) == 0 {
		return
	}
	switch one := param.NewOpt(true); {
	case req.MustCall && req.OneCall:
		p.ToolChoice.OfAny = &anthropic.ToolChoiceAnyParam{DisableParallelToolUse: one}
	case req.MustCall:
		p.ToolChoice.OfAny = &anthropic.ToolChoiceAnyParam{}
	case req.OneCall:
		p.ToolChoice.OfAuto = &anthropic.ToolChoiceAutoParam{DisableParallelToolUse: one}
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
func (m *Model) convertMessages(history []model.Message) []anthropic.MessageParam {
	var out []anthropic.MessageParam
	for _, msg := range history {
		role, content := anthropic.MessageParamRoleUser, m.blocks(msg)
		if msg.Role == model.Assistant {
			role = anthropic.MessageParamRoleAssistant
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, content...)
		} else if len(content) > 0 {
			out = append(out, anthropic.MessageParam{Role: role, Content: content})
		}
	}
	return out
}

func (m *Model) blocks(msg model.Message) []anthropic.ContentBlockParamUnion {
	if versionOf(m.service.Model) < readsFiles {
		msg = msg.WithoutFiles()
	}
	blank := strings.TrimSpace(msg.Text) == ""
	if msg.Role == model.ToolRole {
		result := anthropic.ToolResultBlockParam{ToolUseID: provider.CallID(msg.CallID)}
		if msg.Failed {
			result.IsError = param.NewOpt(true)
		}
		if !blank {
			result.Content = []anthropic.ToolResultBlockParamContentUnion{{OfText: &anthropic.TextBlockParam{Text: msg.Text}}}
		}
		return []anthropic.ContentBlockParamUnion{{OfToolResult: &result}}
	}
	var out []anthropic.ContentBlockParamUnion
	for _, i := range msg.Images {
		out = append(out, anthropic.NewImageBlockBase64(i.MIME, base64.StdEncoding.EncodeToString(i.Data)))
	}
	for _, f := range msg.Files {
		document := anthropic.NewDocumentBlock(anthropic.Base64PDFSourceParam{Data: base64.StdEncoding.EncodeToString(f.Data)})
		document.OfDocument.Title = param.NewOpt(f.Name)
		out = append(out, document)
	}
	out = append(out, m.thinkingBlocks(msg, false, 0)...)
	if !blank {
		out = append(out, anthropic.NewTextBlock(msg.Text))
	}
	out = append(out, m.thinkingBlocks(msg, true, 0)...)
	for i, c := range msg.Calls {
		out = append(out, anthropic.ContentBlockParamUnion{OfToolUse: &anthropic.ToolUseBlockParam{
			ID: provider.CallID(c.ID), Name: provider.ToolName(c.Tool), Input: provider.Arguments(c.Input),
		}})
		out = append(out, m.thinkingBlocks(msg, true, i+1)...)
	}
	return out
}
