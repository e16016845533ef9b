package openai

import (
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/provider"
)

// nativeRequest asks for a value of a schema by response_format. Servers other than OpenAI's
// may constrain the reply without telling the model what it is for, or ignore unknown
// members, so the model gets an instruction as well.
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

// forcedRequest asks for the same by a function that has to be called.
func (m *Model) forcedRequest(req model.Request, form provider.Form) chatRequest {
	name := provider.ToolName(req.Output.Name)
	req.Tools = []model.Tool{{Name: name, Description: provider.OutputDescription, Schema: form.Schema}}
	p := m.requestParams(req)
	p.ToolChoice = &functionTool{Type: "function", Function: function{Name: name}}
	return p
}
