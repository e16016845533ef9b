// Package provider is what the protocols of all model providers share: one
// exchange over HTTP whose every failure is a *model.Error, and the care that
// history needs before a provider accepts it. It speaks no protocol itself, and
// never lets a key, a header or a provider's raw body into an error.
package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// Service is one model at one provider, in the words of its error messages.
type Service struct {
	Name   string // "openai"
	Model  string // "gpt-5-mini"
	KeyVar string // where operators put the key: "OPENAI_API_KEY"
	URLVar string // where operators put the address: "OPENAI_BASE_URL"
}

// FullName is the name that usage reports and prices know.
func (s Service) FullName() string { return s.Name + "/" + s.Model }

// CheckURL finds a base URL that no request can be sent to, before one is tried
// and tried again.
func (s Service) CheckURL(base string) error {
	u, err := url.Parse(base)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return nil
	}
	return &model.Error{
		Code:    event.ModelError,
		Message: "The base URL of " + s.Name + " is no http or https address. Check " + s.URLVar + ".",
	}
}

// Send makes one request; it fits the middleware of Anthropic's SDK. It returns a
// response that may hold a stream; anything else is a *model.Error, or the context's
// own error.
func (s Service) Send(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	res, err := next(req)
	if err != nil {
		if gone := req.Context().Err(); gone != nil {
			return nil, gone
		}
		return nil, s.Lost(err)
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		return nil, s.errorFromResponse(res)
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		res.Body.Close()
		return nil, &model.Error{
			Code:    event.ModelError,
			Message: s.Name + " answered with a web page instead of a reply. Check the base URL (" + s.URLVar + ").",
		}
	}
	res.Body = &body{ReadCloser: res.Body, service: s}
	return res, nil
}

// Lost is the failure of a connection: it could not be made, or broke before the
// reply was complete.
func (s Service) Lost(err error) *model.Error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // the URL can hold credentials
	}
	return &model.Error{
		Code:      event.ModelError,
		Message:   "The connection to " + s.Name + " failed before the reply was complete.",
		Retryable: true,
		Err:       err,
	}
}

// Garbled is a stream that broke its own protocol. The cause is not kept: it
// quotes what the provider sent.
func (s Service) Garbled() *model.Error {
	return &model.Error{
		Code:      event.ModelError,
		Message:   s.Name + " sent a reply that could not be read.",
		Retryable: true,
		Err:       errors.New("unreadable event in the stream"),
	}
}

// Outcome decides what ends a reply whose stream ended: the context, a mapped
// error as it is, or a garbled stream; nothing when err is nil.
func (s Service) Outcome(ctx context.Context, err error) error {
	if gone := ctx.Err(); gone != nil {
		return gone
	}
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*model.Error](err); ok {
		return known
	}
	return s.Garbled()
}

// body maps the errors of reading, so that a broken connection can be told from
// a broken protocol, and bounds the response.
type body struct {
	io.ReadCloser
	service Service
	event   int // bytes of the incomplete event: those since the last blank line
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.event += n
	if i := max(bytes.LastIndex(p[:n], []byte("\n\n")), bytes.LastIndex(p[:n], []byte("\n\r\n"))); i >= 0 {
		b.event = n - i
	}
	if b.event > maxEvent {
		return 0, b.service.tooLarge(fmt.Sprintf("%d bytes in one event", maxEvent))
	}
	if err != nil && err != io.EOF {
		err = b.service.Lost(err)
	}
	return n, err
}

// Client prepares the HTTP client of a provider; nil means one that all
// providers share. Redirects are not followed: no API needs them, and they would
// carry the key to another host.
func Client(c *http.Client) *http.Client {
	if c == nil {
		c = shared()
	}
	own := *c
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// shared keeps more idle connections than the default client, for local servers
// that speak HTTP/1.1, and gives a server ten minutes to load a model.
var shared = sync.OnceValue(func() *http.Client {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultClient
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = 32
	t.ResponseHeaderTimeout = 10 * time.Minute
	return &http.Client{Transport: t}
})
