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

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/provider"
	"github.com/parley-server/parley/internal/sse"
)

const (
	officialURL = "https://api.anthropic.com/"
	apiVersion  = "2023-06-01"
)

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
	exchange provider.Exchange
	unusable error // reason why requests are impossible, or nil
}

// New returns a model. It sends nothing before Generate.
func New(cfg Config) *Model {
	service := provider.Service{
		Name: cmp.Or(cfg.Provider, "anthropic"), Model: cfg.Model,
		Key: cmp.Or(cfg.KeyName, "ANTHROPIC_API_KEY"), URL: cmp.Or(cfg.URLName, "ANTHROPIC_BASE_URL"),
	}
	base := cmp.Or(cfg.BaseURL, officialURL)
	header := http.Header{"Anthropic-Version": {apiVersion}}
	if key := strings.TrimSpace(cfg.APIKey); key != "" {
		header.Set("X-Api-Key", key)
	}
	return &Model{
		service:  service,
		exchange: provider.Exchange{Service: service, Client: provider.Client(cfg.HTTPClient), Base: base, Header: header},
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
func (m *Model) stream(ctx context.Context, req model.Request, p params) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if m.unusable != nil {
			yield(model.Chunk{}, m.unusable)
			return
		}
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		r := m.newReply(req, p)
		stopped, err := m.readReply(inner, r, p, yield)
		if stopped {
			return
		}
		if err := m.outcome(ctx, err, r); err != nil {
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

// readReply sends a request, reads the reply to its end, or to the error that ends it, and yields the
// text. It reports stopped when nothing more may be yielded.
func (m *Model) readReply(ctx context.Context, r *reply, p params, yield func(model.Chunk, error) bool) (stopped bool, err error) {
	res, err := m.exchange.Post(ctx, "v1/messages", p)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	r.requestID = provider.RequestID(res.Header)
	for frames := sse.NewReader(res.Body); !r.complete; {
		ev, err := nextEvent(frames)
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		text, summary := r.addEvent(ev)
		if err := m.service.Exceeded(&r.bound); err != nil {
			yield(model.Chunk{}, err)
			return true, nil
		}
		if text+summary != "" && !yield(model.Chunk{Text: text, Summary: summary}, nil) {
			return true, nil
		}
	}
	return false, nil
}

// outcome decides whether the reply is complete: only message_stop completes it.
func (m *Model) outcome(ctx context.Context, err error, r *reply) error {
	if reported, ok := errors.AsType[*reportedError](err); ok {
		err = m.service.Reported(reported.data)
	}
	if err == nil && !r.complete {
		err = m.service.Lost(io.ErrUnexpectedEOF)
	}
	return m.service.Outcome(ctx, err)
}
