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
		Messages:  convertMessages(provider.Messages(req)),
	}
	switch req.Effort {
	case "":
	case "minimal":
		p.OutputConfig.Effort = anthropic.OutputConfigEffortLow
	default:
		p.OutputConfig.Effort = anthropic.OutputConfigEffort(req.Effort)
	}
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
	addOptions(&p, req)
	return p
}

// maxTemperature is the protocol's maximum; OpenAI's is 2.
const maxTemperature = 1

// addOptions adds the options of the caller that the protocol has. It has no seed.
func addOptions(p *anthropic.MessageNewParams, req model.Request) {
	if t := req.Options.Temperature; t != nil {
		p.Temperature = param.NewOpt(min(*t, maxTemperature))
	}
	if t := req.Options.TopP; t != nil && req.Options.Temperature == nil { // new models reject both
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
func convertMessages(history []model.Message) []anthropic.MessageParam {
	var out []anthropic.MessageParam
	for _, msg := range history {
		role, content := anthropic.MessageParamRoleUser, blocks(msg)
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

func blocks(msg model.Message) []anthropic.ContentBlockParamUnion {
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
	if !blank {
		out = append(out, anthropic.NewTextBlock(msg.Text))
	}
	for _, c := range msg.Calls {
		out = append(out, anthropic.ContentBlockParamUnion{OfToolUse: &anthropic.ToolUseBlockParam{
			ID: provider.CallID(c.ID), Name: provider.ToolName(c.Tool), Input: provider.Arguments(c.Input),
		}})
	}
	return out
}
