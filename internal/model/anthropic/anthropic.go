// Package anthropic is a client for Anthropic's Messages API. It reads nothing from the environment
// and never retries by itself.
package anthropic

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/provider"
)

const officialURL = "https://api.anthropic.com/"

// Config names a model and its address.
type Config struct {
	Model      string       // "claude-sonnet-4-5"
	APIKey     string       // sent as x-api-key
	BaseURL    string       // without a version, "https://gateway.example"; empty means Anthropic itself
	HTTPClient *http.Client // nil means one that all models share
	Provider   string       // the first half of Name; empty means "anthropic"
	KeyName    string       // the key in messages for administrators; empty means the variable
	URLName    string       // likewise the address
}

// Model is one model at one server.
type Model struct {
	service  provider.Service
	messages anthropic.MessageService
	unusable error // reason why requests are impossible, or nil
}

// New returns a model. It sends nothing before Generate.
func New(cfg Config) *Model {
	service := provider.Service{
		Name: cmp.Or(cfg.Provider, "anthropic"), Model: cfg.Model,
		Key: cmp.Or(cfg.KeyName, "ANTHROPIC_API_KEY"), URL: cmp.Or(cfg.URLName, "ANTHROPIC_BASE_URL"),
	}
	base := cmp.Or(cfg.BaseURL, officialURL)
	options := []option.RequestOption{
		option.WithBaseURL(base),
		option.WithHTTPClient(provider.Client(cfg.HTTPClient)),
		option.WithMiddleware(service.Send),
		option.WithMaxRetries(0), // the agent retries, and counts
	}
	if key := strings.TrimSpace(cfg.APIKey); key != "" {
		options = append(options, option.WithAPIKey(key))
	}
	return &Model{
		service:  service,
		messages: anthropic.NewMessageService(options...),
		unusable: service.CheckURL(base),
	}
}

// Name implements model.Model.
func (m *Model) Name() string { return m.service.FullName() }

// Generate implements model.Model. Only a reply that ended with model.StopTools contains calls; a
// truncated reply does not have one. For Output the model has to call a tool; a model that cannot
// be forced is instructed to.
func (m *Model) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	if req.Output == nil {
		return m.service.ReplyOrPlain(req, func(req model.Request) iter.Seq2[model.Chunk, error] {
			return m.stream(ctx, req, m.requestParams(req))
		})
	}
	form := provider.FormOf(req.Output.Schema)
	return form.Answer(m.stream(ctx, req, m.forcedRequest(req, form)), m.stream(ctx, req, m.askedRequest(req, form)))
}

// stream makes one request and yields the reply.
func (m *Model) stream(ctx context.Context, req model.Request, p anthropic.MessageNewParams) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if m.unusable != nil {
			yield(model.Chunk{}, m.unusable)
			return
		}
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		var res *http.Response
		stream := m.messages.NewStreaming(inner, p, option.WithResponseInto(&res))
		defer stream.Close()

		r := m.newReply(req, p)
		if res != nil {
			r.requestID = provider.RequestID(res.Header)
		}
		for !r.complete && stream.Next() {
			text, summary := r.addEvent(stream.Current())
			if err := m.service.Exceeded(&r.bound); err != nil {
				yield(model.Chunk{}, err)
				return
			}
			if text+summary != "" && !yield(model.Chunk{Text: text, Summary: summary}, nil) {
				return
			}
		}
		if err := m.outcome(ctx, stream.Err(), r); err != nil {
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

// outcome decides whether the reply is complete: only message_stop completes it.
func (m *Model) outcome(ctx context.Context, err error, r *reply) error {
	if reported, ok := errors.AsType[*anthropic.Error](err); ok {
		err = m.service.Reported([]byte(reported.RawJSON()))
	}
	if err == nil && !r.complete {
		err = m.service.Lost(io.ErrUnexpectedEOF)
	}
	return m.service.Outcome(ctx, err)
}
