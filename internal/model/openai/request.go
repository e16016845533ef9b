package openai

import (
	"encoding/base64"
	"encoding/json"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/provider"
)

// failed marks the result of a call that did not succeed; the protocol has no
// field for it.
const failed = "Error: "

func (m *Model) params(req model.Request) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{
		Model:         m.service.Model,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}
	if req.System != "" {
		p.Messages = append(p.Messages, openai.SystemMessage(req.System))
	}
	for _, msg := range provider.Messages(req) {
		p.Messages = append(p.Messages, message(msg))
	}
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, tool(t))
	}
	if n := int64(req.MaxTokens); n > 0 {
		// OpenAI's reasoning models refuse the old name, many other servers ignore the new one.
		if m.official {
			p.MaxCompletionTokens = param.NewOpt(n)
		} else {
			p.MaxTokens = param.NewOpt(n)
		}
	}
	return p
}

func message(msg model.Message) openai.ChatCompletionMessageParamUnion {
	switch msg.Role {
	case model.Assistant:
		a := openai.ChatCompletionAssistantMessageParam{}
		if msg.Text != "" || len(msg.Calls) == 0 {
			a.Content.OfString = param.NewOpt(msg.Text)
		}
		for _, c := range msg.Calls {
			a.ToolCalls = append(a.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
					ID: provider.CallID(c.ID),
					Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{
						Name:      provider.ToolName(c.Tool),
						Arguments: string(provider.Arguments(c.Input)),
					},
				},
			})
		}
		return openai.ChatCompletionMessageParamUnion{OfAssistant: &a}
	case model.ToolRole:
		text := msg.Text
		if msg.Failed {
			text = failed + text
		}
		return openai.ToolMessage(text, provider.CallID(msg.CallID))
	default:
		if len(msg.Images) > 0 {
			return openai.UserMessage(illustrated(msg))
		}
		return openai.UserMessage(msg.Text)
	}
}

// illustrated is a message with images, which travel inside of it.
func illustrated(msg model.Message) []openai.ChatCompletionContentPartUnionParam {
	var parts []openai.ChatCompletionContentPartUnionParam
	if msg.Text != "" {
		parts = append(parts, openai.TextContentPart(msg.Text))
	}
	for _, i := range msg.Images {
		parts = append(parts, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{
			URL: "data:" + i.MIME + ";base64," + base64.StdEncoding.EncodeToString(i.Data),
		}))
	}
	return parts
}

func tool(t model.Tool) openai.ChatCompletionToolUnionParam {
	f := shared.FunctionDefinitionParam{Name: t.Name, Parameters: shared.FunctionParameters{}}
	if t.Description != "" {
		f.Description = param.NewOpt(t.Description)
	}
	var members map[string]json.RawMessage // the members keep their bytes: numbers are not rounded
	if json.Unmarshal(provider.FormOf(t.Schema).Schema, &members) == nil {
		for k, v := range members {
			f.Parameters[k] = v
		}
	}
	return openai.ChatCompletionFunctionTool(f)
}
