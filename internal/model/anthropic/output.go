package anthropic

import (
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/provider"
)

// forcedRequest requests a value of a schema with a tool that the model has to call. It accepts any
// schema, unlike the native output format.
func (m *Model) forcedRequest(req model.Request, form provider.Form) params {
	name := provider.ToolName(req.Output.Name)
	req.Tools = []model.Tool{{Name: name, Description: provider.OutputDescription, Schema: form.Schema}}
	p := m.requestParams(req)
	p.Thinking = nil // it does not go with a forced call
	p.ToolChoice = &toolChoice{Type: "tool", Name: name, Single: true}
	return p
}

// askedRequest requests the same with an instruction: models that always think reject a forced
// call.
func (m *Model) askedRequest(req model.Request, form provider.Form) params {
	name := provider.ToolName(req.Output.Name)
	req.System += "\n\nAnswer by calling the tool " + name + ", once, and write nothing else."
	p := m.forcedRequest(req, form)
	p.ToolChoice = &toolChoice{Type: "auto", Single: true}
	return p
}
