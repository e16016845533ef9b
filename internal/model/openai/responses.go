package openai

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/provider"
)

// minOutput is the smallest limit of a reply that the Responses API accepts.
const minOutput = 16

// ask makes one request: in the Responses API, which returns the model's reasoning, if the server
// has it and it has the caller's options; else in Chat Completions.
func (m *Model) ask(ctx context.Context, req model.Request, chat func() chatRequest, responses func() responseRequest) iter.Seq2[model.Chunk, error] {
	if !m.responses || m.lacksResponses.Load() || len(req.Options.Stop) > 0 || req.Options.Seed != nil || req.MaxTokens > 0 && req.MaxTokens < minOutput {
		return m.stream(ctx, req, chat())
	}
	return func(yield func(model.Chunk, error) bool) {
		begun := false
		var missing error
		for c, err := range m.respond(ctx, req, responses()) {
			if e, ok := errors.AsType[*model.Error](err); ok && !begun && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed) {
				missing = err
				break
			}
			begun = true
			if !yield(c, err) {
				return
			}
		}
		if missing != nil {
			m.chatInstead(m.stream(ctx, req, chat()), missing, yield)
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

// respond makes one request of the Responses API and yields the reply.
func (m *Model) respond(ctx context.Context, req model.Request, body responseRequest) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if m.unusable != nil {
			yield(model.Chunk{}, m.unusable)
			return
		}
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		r := m.newResponse(req)
		stream, err := m.client.openStream(inner, "responses", body)
		if err == nil {
			defer stream.Close()
			r.requestID = stream.requestID
			var stopped bool
			if stopped, err = m.readEvents(stream, r, yield); stopped {
				return
			}
		}
		if err := m.responseOutcome(ctx, err, r); err != nil {
			yield(model.Chunk{}, err)
			return
		}
		for _, c := range r.finalChunks() {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// readEvents reads a stream to the end of the reply, or to the error that ends it, and yields the
// text. It reports stopped when nothing more may be yielded.
func (m *Model) readEvents(s *chunkStream, r *response, yield func(model.Chunk, error) bool) (stopped bool, err error) {
	for r.status == "" {
		ev, err := s.nextEvent()
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		c := r.addEvent(ev)
		if err := m.service.Exceeded(&r.bound); err != nil {
			yield(model.Chunk{}, err)
			return true, nil
		}
		if c.Text+c.Summary != "" && !yield(c, nil) {
			return true, nil
		}
	}
	return false, nil
}

// responseOutcome decides whether the reply is complete: only its last event completes it.
func (m *Model) responseOutcome(ctx context.Context, err error, r *response) error {
	if reported, ok := errors.AsType[*reportedError](err); ok {
		err = m.service.Reported(reported.data)
	}
	if err == nil && r.status == "" {
		err = m.service.Lost(io.ErrUnexpectedEOF)
	}
	return m.service.Outcome(ctx, err)
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
