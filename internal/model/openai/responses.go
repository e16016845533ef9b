package openai

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/provider"
)

// minOutput is the smallest limit of a reply that the Responses API accepts.
const minOutput = 16

// ask makes one request: in the Responses API, which returns the model's reasoning, if the server
// has it and it has the caller's options; else in Chat Completions.
func (m *Model) ask(ctx context.Context, req model.Request, chat func() chatRequest,
	responses func() responseRequest) iter.Seq2[model.Chunk, error] {
	if req.Resume != "" {
		return m.respond(ctx, req, responseRequest{})
	}
	if !m.responses || m.lacksResponses.Load() || len(req.Options.Stop) > 0 || req.Options.Seed != nil ||
		req.MaxTokens > 0 && req.MaxTokens < minOutput {
		return m.chat(ctx, req, chat())
	}
	return func(yield func(model.Chunk, error) bool) {
		begun := false
		var missing error
		for c, err := range m.respond(ctx, req, responses()) {
			if e, ok := errors.AsType[*model.Error](err); ok && !begun && (e.Status == http.StatusNotFound ||
				e.Status == http.StatusMethodNotAllowed) {
				missing = err
				break
			}
			begun = true
			if !yield(c, err) {
				return
			}
		}
		if missing != nil {
			m.chatInstead(m.chat(ctx, req, chat()), missing, yield)
		}
	}
}

// chatInstead yields a reply of Chat Completions, and remembers that the server lacks the Responses
// API. If it has neither, the first error is the better one: the model may be unknown.
func (m *Model) chatInstead(reply iter.Seq2[model.Chunk, error], missing error, yield func(model.Chunk, error) bool) {
	for c, err := range reply {
		if err != nil && !m.lacksResponses.Load() {
			yield(model.Chunk{}, missing)
			return
		}
		m.lacksResponses.Store(true)
		if !yield(c, err) {
			return
		}
	}
}

// respond makes one request of the Responses API and yields the reply, or reads a reply again.
func (m *Model) respond(ctx context.Context, req model.Request, body responseRequest) iter.Seq2[model.Chunk, error] {
	c := provider.Call{Method: http.MethodPost, Path: "responses", Body: body}
	if req.Resume != "" {
		c = provider.Call{Method: http.MethodGet, Path: "responses/" + url.PathEscape(req.Resume), Query: url.Values{"stream": {"true"}}}
		if m.encryptsReasoning() {
			c.Query.Set("include[]", encryptedReasoning)
		}
	}
	return m.stream(ctx, c, func() incoming { return m.newResponse(req) })
}

// CancelResponse implements model.Canceler.
func (m *Model) CancelResponse(ctx context.Context, id string) error {
	stream, err := m.openStream(ctx, provider.Call{Method: http.MethodPost, Path: "responses/" + url.PathEscape(id) + "/cancel"})
	if err != nil {
		return err
	}
	stream.Close()
	return nil
}

// nativeResponse requests a value of a schema by the format of the text.
func (m *Model) nativeResponse(req model.Request, form provider.Form) responseRequest {
	p := m.responseParams(req)
	p.Text = &responseText{responseTextFormat{Type: "json_schema", outputSchema: outputSchema{
		Name: provider.ToolName(req.Output.Name), Schema: form.Schema, Strict: isStrict(form.Schema),
	}}}
	return p
}

// forcedResponse requests the same with a function that the model has to call.
func (m *Model) forcedResponse(req model.Request, form provider.Form) responseRequest {
	name := provider.ToolName(req.Output.Name)
	req.Tools = []model.Tool{{Name: name, Description: provider.OutputDescription, Schema: form.Schema}}
	p := m.responseParams(req)
	p.ToolChoice = map[string]string{"type": "function", "name": name}
	return p
}
