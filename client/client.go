// Package client speaks the public API of a Parley server. A stream that breaks is
// resumed by itself, so that a caller sees every frame once and in order, whatever
// happens to connections and servers in between.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Options say which server and who asks. URL, Workspace and Key are required.
type Options struct {
	URL       string // "https://parley.example", may have a path
	Workspace string // slug or id
	Key       string
	HTTP      *http.Client // nil takes one of our own
	UserAgent string
	// Tries is how often a broken stream is tried again after the last frame that
	// came through; default 5.
	Tries int
	// Wait is the pause before the first of these tries, where the server asks for
	// no other; default 1 s. It doubles with every try.
	Wait time.Duration
	// Retrying is told of every such try. It may be nil.
	Retrying func(Retry)
}

// Retry is one attempt to get a broken stream back.
type Retry struct {
	Try, Of int
	Wait    time.Duration // until this attempt
	Err     error         // what broke
}

// Client is one workspace of one server, as one key sees it. It may be shared.
type Client struct {
	opt  Options
	base *url.URL
	http *http.Client
}

// New makes a client. Nothing is sent before its first call.
func New(opt Options) (*Client, error) {
	opt.URL, opt.Key = strings.TrimSpace(opt.URL), strings.TrimSpace(opt.Key)
	u, err := url.Parse(strings.TrimRight(opt.URL, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the server's address %q is not one with http:// or https://", opt.URL)
	}
	if strings.ContainsFunc(opt.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the key has a space, a line break or another character that no key has")
	}
	opt.Tries = cmp.Or(opt.Tries, 5)
	opt.Wait = cmp.Or(opt.Wait, time.Second)
	opt.UserAgent = cmp.Or(opt.UserAgent, "parley-go")
	if opt.Retrying == nil {
		opt.Retrying = func(Retry) {}
	}
	c := &Client{opt: opt, base: u, http: opt.HTTP}
	if c.http == nil {
		c.http = &http.Client{
			Transport: http.DefaultTransport.(*http.Transport).Clone(),
			// A redirected POST would arrive as a GET, or with its key at another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return c, nil
}

// URL is the server's address as it may be shown: without its password.
func (c *Client) URL() string { return c.base.Redacted() }

// Close gives idle connections up.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// path is below the client's workspace.
func (c *Client) path(parts ...string) *url.URL {
	return c.base.JoinPath(append([]string{"api/v1/workspaces", url.PathEscape(c.opt.Workspace)}, parts...)...)
}

// request makes a request with the key. Body nil means none.
func (c *Client) request(ctx context.Context, method string, u *url.URL, body []byte) (*http.Request, error) {
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), r)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.opt.Key)
	req.Header.Set("User-Agent", c.opt.UserAgent)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// send sends a request, or fails with an *Unreachable.
func (c *Client) send(req *http.Request) (*http.Response, error) {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	res, err := c.http.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		return nil, c.unreachable(req, err, connected.Load())
	}
	return res, nil
}

// maxAnswer bounds what is read of an answer that is no stream.
const maxAnswer = 64 << 20

// do sends a request and reads the whole answer, or fails with an *Error or an
// *Unreachable.
func (c *Client) do(req *http.Request) ([]byte, error) {
	res, err := c.send(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if res.StatusCode/100 != 2 {
		return nil, failure(res, body)
	}
	if err != nil {
		return nil, c.unreachable(req, err, true)
	}
	return body, nil
}

// call is do with JSON in and out; in may be nil. All that is answered to it has data.
func call[T any](ctx context.Context, c *Client, method string, u *url.URL, in any) (out T, err error) {
	var body []byte
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return out, fmt.Errorf("encode request: %w", err)
		}
	}
	req, err := c.request(ctx, method, u, body)
	if err != nil {
		return out, err
	}
	answer, err := c.do(req)
	if err != nil {
		return out, err
	}
	var envelope struct{ Data *json.RawMessage }
	if json.Unmarshal(answer, &envelope) != nil || envelope.Data == nil || json.Unmarshal(answer, &out) != nil {
		return out, foreign(u, http.StatusOK, answer)
	}
	return out, nil
}
