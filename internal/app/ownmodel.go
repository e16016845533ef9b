package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/anthropic"
	"github.com/parley-server/parley/internal/model/openai"
	"github.com/parley-server/parley/internal/redact"
	"github.com/parley-server/parley/internal/store/modelset"
	"github.com/parley-server/parley/internal/store/vault"
)

// keyStand stands for the key of a provider in requests, until they leave.
const keyStand = "ph_model_provider_key"

// ownProviders makes models of the providers that workspaces have added. Their requests are limited
// as those of tools are: they reach public addresses, and others only if the operator allows them; a
// key leaves only for the hosts of its credential.
type ownProviders struct {
	store *modelset.Store
	vault *vault.Store
	guard *egress.Guard
}

// open returns a model of a provider.
func (o ownProviders) open(workspace uuid.UUID, p modelset.Provider, name string) model.Model {
	key := ""
	if p.Credential != "" {
		key = keyStand
	}
	client := &http.Client{Transport: &providerTransport{o, workspace, p}}
	keyName, urlName := "the secret "+p.Credential, p.BaseURL+" of the provider "+p.Name
	if p.Credential == "" {
		keyName = "parley models set, because the provider has no secret"
	}
	if p.Kind == modelset.Anthropic {
		return anthropic.New(anthropic.Config{Model: name, APIKey: key, BaseURL: p.BaseURL, HTTPClient: client, Provider: p.Name,
			KeyName: keyName, URLName: urlName})
	}
	return openai.New(openai.Config{Model: name, APIKey: key, BaseURL: p.BaseURL, HTTPClient: client, Provider: p.Name, KeyName: keyName,
		URLName: urlName})
}

// providerTransport sends the requests of one provider. It reads the key for each request, so that a
// new one applies at once.
type providerTransport struct {
	ownProviders
	workspace uuid.UUID
	provider  modelset.Provider
}

// RoundTrip implements http.RoundTripper.
func (t *providerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	run, err := t.newRun(req.Context(), req.URL)
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	res, err := sendTimed(req, silence{t.provider.Timeout, "parley models set " + t.provider.Name + " --timeout"}, run.Do, run.Close)
	if err != nil {
		if refused, ok := errors.AsType[*egress.Error](err); ok {
			return nil, notUsable("The address of the provider %s: %s", t.provider.Name, refused.Reason)
		}
		return nil, err
	}
	return res, nil
}

// silence is how long a provider may send nothing, and the setting of that limit.
type silence struct {
	most    time.Duration
	setting string
}

// timedTransport ends requests after a silence.
type timedTransport struct {
	http.RoundTripper
	silence
}

// RoundTrip implements http.RoundTripper.
func (t timedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	return sendTimed(req, t.silence, t.RoundTripper.RoundTrip, func() {})
}

// sendTimed sends a request, and cancels it after a silence before or within the response, which is a
// *model.Error. It calls end when the response is closed, or failed.
func sendTimed(req *http.Request, limit silence, send func(*http.Request) (*http.Response, error), end func()) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	quiet := time.AfterFunc(limit.most, func() {
		cancel(&model.Error{Code: event.ModelError, Retryable: true,
			Message: "The agent's model did not answer in time. Send the message again.",
			Hint:    fmt.Sprintf("The provider sent nothing for %s. %s sets this limit.", limit.most, limit.setting)})
	})
	done := sync.OnceFunc(func() { quiet.Stop(); cancel(nil); end() })
	res, err := send(req.WithContext(ctx))
	if err != nil {
		done()
		return nil, silenceOr(ctx, err)
	}
	res.Body = &timedBody{res.Body, ctx, quiet, limit.most, done}
	return res, nil
}

// silenceOr returns the silence that ended ctx as the reason of an error, or else the error.
func silenceOr(ctx context.Context, err error) error {
	if silent, ok := errors.AsType[*model.Error](context.Cause(ctx)); ok {
		return silent
	}
	return err
}

// newRun opens the way to the provider, with its key.
func (t *providerTransport) newRun(ctx context.Context, to *url.URL) (*egress.Run, error) {
	cfg := egress.RunConfig{Hosts: []string{hostEntry(to)}, Redact: redact.New(),
		AnswerTime: 2 * t.provider.Timeout} // sendTimed ends it before
	if name := t.provider.Credential; name != "" {
		opened, err := t.vault.Open(ctx, t.workspace, []string{name})
		if err != nil && fault.From(err) == nil {
			return nil, fmt.Errorf("open the key of the provider %s: %w", t.provider.Name, err)
		}
		if err != nil || len(opened[0].Value.Reveal()) == 0 {
			return nil,
				notUsable("The provider %s of the workspace needs the secret %s, which has no value: parley secrets set %[2]s %[3]s",
					t.provider.Name, name, vault.HostFlags(to))
		}
		c := opened[0]
		if !c.MayReach(to) {
			return nil, notUsable("The secret %[2]s of the provider %[1]s may not be sent to its host: parley secrets set %[2]s %[3]s",
				t.provider.Name, name, vault.HostFlags(to))
		}
		cfg.Redact = redact.New(redact.Secret{Name: c.Name, Value: c.Value.Reveal()})
		cfg.Credentials = []egress.Credential{{Name: c.Name, Version: c.Version, Placeholder: keyStand, Value: c.Value, Hosts: c.Hosts,
			AllowHTTP: c.AllowHTTP}}
	}
	return t.guard.Run(cfg)
}

// notUsable returns the error of a provider that an administrator must correct. Its hint is for the
// log and for tests of the model.
func notUsable(format string, args ...any) *model.Error {
	return &model.Error{Code: event.ModelError, Message: model.Unavailable, Admin: true, Hint: fmt.Sprintf(format, args...)}
}

// hostEntry returns the entry of a list of hosts for an address.
func hostEntry(u *url.URL) string {
	if port := u.Port(); port != "" {
		return u.Hostname() + ":" + port
	}
	return u.Hostname()
}

// timedBody is a response that ends after a silence.
type timedBody struct {
	io.ReadCloser
	ctx   context.Context
	quiet *time.Timer
	most  time.Duration
	end   func()
}

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.quiet.Reset(b.most)
	}
	if err != nil && err != io.EOF {
		err = silenceOr(b.ctx, err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *timedBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}
