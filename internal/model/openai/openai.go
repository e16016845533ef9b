// Package openai is a client for the Responses API of OpenAI, and for Chat Completions, the API of
// compatible servers such as Ollama and vLLM. It reads nothing from the environment and never
// retries by itself.
package openai

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/provider"
)

const officialURL = "https://api.openai.com/v1/"

// Config names a model and its address.
type Config struct {
	Model      string       // "gpt-5-mini"
	APIKey     string       // may be empty for servers that require none
	BaseURL    string       // with its version, "http://127.0.0.1:11434/v1"; empty means OpenAI itself
	HTTPClient *http.Client // nil means one that all models share
	Provider   string       // the first half of Name; empty means "openai"
	KeyName    string       // the key in messages for administrators; empty means the variable
	URLName    string       // likewise the address
	Responses  bool         // use the Responses API at BaseURL; always used at OpenAI itself
	Background bool         // responses continue at the server if the connection breaks; implies Responses
}

// Model is one model at one server.
type Model struct {
	service  provider.Service
	exchange provider.Exchange
	official bool
	unusable error // reason why requests are impossible, or nil

	responses      bool        // requests use the Responses API
	lacksResponses atomic.Bool // the server turned out to lack it
	background     bool        // responses run in the background, and can be read again
}

// New returns a model. It sends nothing before Generate.
func New(cfg Config) *Model {
	service := provider.Service{
		Name: cmp.Or(cfg.Provider, "openai"), Model: cfg.Model,
		Key: cmp.Or(cfg.KeyName, "OPENAI_API_KEY"), URL: cmp.Or(cfg.URLName, "OPENAI_BASE_URL"),
	}
	base := cmp.Or(cfg.BaseURL, officialURL)
	official := strings.HasPrefix(base, "https://api.openai.com/")
	header := make(http.Header)
	if key := strings.TrimSpace(cfg.APIKey); key != "" {
		header.Set("Authorization", "Bearer "+key)
	}
	return &Model{
		service:  service,
		exchange: provider.Exchange{Service: service, Client: provider.Client(cfg.HTTPClient), Base: base, Header: header},
		official: official, responses: official || cfg.Responses || cfg.Background, background: cfg.Background,
		unusable: service.CheckURL(base),
	}
}

// Name implements model.Model.
func (m *Model) Name() string { return m.service.FullName() }

// Generate implements model.Model. Only a reply that ended with model.StopTools contains calls; a
// truncated reply does not have one. Output is requested natively; if a server rejects that, the
// model has to call a function.
func (m *Model) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	if req.Output == nil {
		return m.service.ReplyOrPlain(req, func(req model.Request) iter.Seq2[model.Chunk, error] {
			return m.ask(ctx, req, func() chatRequest { return m.requestParams(req) }, func() responseRequest { return m.responseParams(req) })
		})
	}
	form := provider.FormOf(req.Output.Schema)
	return form.Answer(
		m.ask(ctx, req, func() chatRequest { return m.nativeRequest(req, form) }, func() responseRequest { return m.nativeResponse(req, form) }),
		m.ask(ctx, req, func() chatRequest { return m.forcedRequest(req, form) }, func() responseRequest { return m.forcedResponse(req, form) }))
}

// incoming is the reply to one request while it arrives, in either API.
type incoming interface {
	// next reads an event and returns the part of it that is yielded at once. It returns io.EOF at
	// the end of the reply.
	next(s *chunkStream) (model.Chunk, error)
	// limits returns what the reply has used of its limits.
	limits() *provider.Bound
	// outcome returns nil if the reply is complete. err is what ended the stream, nil at its end.
	outcome(ctx context.Context, m *Model, err error) error
	// finalChunks returns the calls, the reasoning and the usage of a complete reply.
	finalChunks() []model.Chunk
}

// stream makes one request and yields the reply.
func (m *Model) stream(ctx context.Context, c provider.Call, newReply func() incoming) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if m.unusable != nil {
			yield(model.Chunk{}, m.unusable)
			return
		}
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		r := newReply()
		stream, err := m.openStream(inner, c)
		if err == nil {
			defer stream.Close()
			var stopped bool
			if stopped, err = m.readReply(stream, r, yield); stopped {
				return
			}
		}
		if reported, ok := errors.AsType[*reportedError](err); ok {
			err = m.service.Reported(reported.data)
		}
		if err := r.outcome(ctx, m, err); err != nil {
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

// readReply reads a reply to its end, or to the error that ends it, and yields the text. It reports
// stopped when nothing more may be yielded.
func (m *Model) readReply(s *chunkStream, r incoming, yield func(model.Chunk, error) bool) (stopped bool, err error) {
	for {
		c, err := r.next(s)
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if err := m.service.Exceeded(r.limits()); err != nil {
			yield(model.Chunk{}, err)
			return true, nil
		}
		if c.Text+c.Summary+c.Response != "" && !yield(c, nil) {
			return true, nil
		}
	}
}

// chat makes one request of Chat Completions and yields the reply.
func (m *Model) chat(ctx context.Context, req model.Request, body chatRequest) iter.Seq2[model.Chunk, error] {
	return m.stream(ctx, provider.Call{Method: http.MethodPost, Path: "chat/completions", Body: body}, func() incoming {
		return newReply(req)
	})
}
