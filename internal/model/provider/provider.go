// Package provider contains the shared parts of all model providers' protocols: one HTTP exchange
// that reports every failure as a *model.Error, and the changes to history that make a provider
// accept it. It implements no protocol itself, and never puts a key, a header or a provider's raw
// body into an error.
package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// Service is one model at one provider, as error messages name it.
type Service struct {
	Name  string // "openai"
	Model string // "gpt-5-mini"
	Key   string // where the key is set: "OPENAI_API_KEY"
	URL   string // where the address is set: "OPENAI_BASE_URL"
}

// FullName returns the name used in usage reports and prices.
func (s Service) FullName() string { return s.Name + "/" + s.Model }

// CheckURL rejects a base URL that requests cannot use, before any request is tried and retried.
func (s Service) CheckURL(base string) error {
	u, err := url.Parse(base)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return nil
	}
	return s.misconfigured("The base URL of %s is not an http or https address. Check %s.", s.Name, s.URL)
}

// Send makes one request with next. It returns a response that may contain a stream; anything else is
// a *model.Error, or the context's own error.
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
		return nil, s.misconfigured("%s answered with a web page instead of a reply. Check the base URL (%s).", s.Name, s.URL)
	}
	res.Body = &body{ReadCloser: res.Body, service: s}
	return res, nil
}

// misconfigured returns the error of a model that only an administrator can make usable.
func (s Service) misconfigured(hint string, args ...any) *model.Error {
	e := &model.Error{Code: event.ModelError, Model: s.FullName()}
	needsAdmin(e, hint, args...)
	return e
}

// Lost returns the error of a connection that failed, or broke before the reply was complete. An error
// that is known already, because the client's transport returned it, stays.
func (s Service) Lost(err error) *model.Error {
	if known, ok := errors.AsType[*model.Error](err); ok {
		return known
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // the URL can hold credentials
	}
	e := &model.Error{
		Code: event.ModelError, Model: s.FullName(), Retryable: true, Err: err,
		Message: "The connection to the agent's model broke. Send the message again.",
		Hint:    "The connection to " + s.Name + " failed before the reply was complete.",
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		e.Admin = true
		e.Message = "The agent's model cannot be reached. Send the message again in a minute."
		e.Hint = fmt.Sprintf("Cannot connect to %s. Check the base URL (%s) and the network.", s.Name, s.URL)
	}
	return e
}

// Garbled returns the error of a stream that violated its protocol. The cause is dropped because it
// quotes the provider's data.
func (s Service) Garbled() *model.Error {
	return &model.Error{
		Code: event.ModelError, Model: s.FullName(), Retryable: true,
		Message: "The reply of the agent's model could not be read. Send the message again.",
		Hint:    s.Name + " sent a reply that could not be read.",
		Err:     errors.New("unreadable event in the stream"),
	}
}

// Outcome returns the error of a reply after the end of its stream: the context's error, a mapped
// error unchanged, or a garbled stream; nil if err is nil.
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

// body maps read errors, to distinguish a broken connection from a broken protocol, and limits the
// response.
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

// Client prepares the HTTP client of a provider; nil means one that all providers share. Redirects
// are not followed: no API needs them, and they would send the key to another host.
func Client(c *http.Client) *http.Client {
	if c == nil {
		c = shared()
	}
	own := *c
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// shared keeps more idle connections than the default client, for local servers with HTTP/1.1, and
// gives a server ten minutes to load a model.
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
