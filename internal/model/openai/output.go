package openai

import (
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/provider"
)

// nativeRequest requests a value of a schema by response_format. Servers other than OpenAI's may
// constrain the reply without informing the model, or ignore unknown members, so the model gets an
// instruction as well.
func (m *Model) nativeRequest(req model.Request, form provider.Form) chatRequest {
	if !m.official {
		req.System += "\n\nAnswer with one JSON value and nothing else. It fits this JSON Schema:\n" + string(form.Schema)
	}
	p := m.requestParams(req)
	p.ResponseFormat = &responseFormat{Type: "json_schema", JSONSchema: outputSchema{
		Name: provider.ToolName(req.Output.Name), Schema: form.Schema, Strict: isStrict(form.Schema),
	}}
	return p
}

// forcedRequest requests the same with a function that the model has to call.
func (m *Model) forcedRequest(req model.Request, form provider.Form) chatRequest {
	name := provider.ToolName(req.Output.Name)
	req.Tools = []model.Tool{{Name: name, Description: provider.OutputDescription, Schema: form.Schema}}
	p := m.requestParams(req)
	p.ToolChoice = &functionTool{Type: "function", Function: function{Name: name}}
	return p
}
