// Package client is the Go client of a Parley server.
//
// Send sends a message and yields the frames of the answer. If the connection drops, Send
// reconnects and resumes after the last frame: the loop sees every frame once and in order.
//
//	c, err := client.New(client.Options{URL: "https://parley.example", Workspace: "demo", Key: key})
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	for frame, err := range c.Send(ctx, client.Message{Command: "What is new?"}) {
//		if err != nil {
//			return err
//		}
//		session, lastID = …, frame.ID // the first frame is Open and names the session
//	}
//
// A process that stops reading does not stop the turn. Another process resumes the stream with the
// session and the ID of the last frame that it has:
//
//	for frame, err := range c.Follow(ctx, session, lastID) {
//		…
//	}
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

// Options configure a Client. URL, Workspace and Key are required.
type Options struct {
	URL       string // "https://parley.example", may have a path
	Workspace string // slug or id
	Key       string
	HTTP      *http.Client // nil means a client that follows no redirects
	UserAgent string
	// Tries is the number of attempts to resume a broken stream after its last frame;
	// default 5.
	Tries int
	// Wait is the pause before the first of these attempts, unless the server names
	// another; default 1 s. It doubles with every attempt.
	Wait time.Duration
	// Retrying is called before every such attempt. It may be nil.
	Retrying func(Retry)
}

// Retry is one attempt to resume a broken stream.
type Retry struct {
	Try, Of int
	Wait    time.Duration // until this attempt
	Err     error         // the failure
}

// Client calls one workspace of one server with one key. Its methods are safe for concurrent use.
type Client struct {
	opt  Options
	base *url.URL
	http *http.Client
}

// New returns a client. It sends nothing before its first call.
func New(opt Options) (*Client, error) {
	opt.URL, opt.Key = strings.TrimSpace(opt.URL), strings.TrimSpace(opt.Key)
	u, err := url.Parse(strings.TrimRight(opt.URL, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is not an address with http:// or https://", opt.URL)
	}
	if strings.ContainsFunc(opt.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the key contains a space, a line break or another character that keys do not have")
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

// URL returns the server's address without its password.
func (c *Client) URL() string { return c.base.Redacted() }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// workspaceURL returns a URL below the client's workspace.
func (c *Client) workspaceURL(parts ...string) *url.URL {
	return c.base.JoinPath(append([]string{"api/v1/workspaces", url.PathEscape(c.opt.Workspace)}, parts...)...)
}

// newRequest returns a request with the key. A nil body means none.
func (c *Client) newRequest(ctx context.Context, method string, u *url.URL, body []byte) (*http.Request, error) {
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

// sendRequest sends a request. It fails with an *Unreachable.
func (c *Client) sendRequest(req *http.Request) (*http.Response, error) {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	res, err := c.http.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		return nil, c.unreachableError(req, err, connected.Load())
	}
	return res, nil
}

// maxAnswer bounds a response that is not a stream.
const maxAnswer = 64 << 20

// doRequest sends a request and reads the whole response. It fails with an *Error or an
// *Unreachable.
func (c *Client) doRequest(req *http.Request) ([]byte, error) {
	body, _, err := c.exchange(req)
	return body, err
}

// exchange is doRequest with the header of the response.
func (c *Client) exchange(req *http.Request) ([]byte, http.Header, error) {
	res, err := c.sendRequest(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if res.StatusCode/100 != 2 {
		return nil, nil, decodeFailure(res, body)
	}
	if err != nil {
		return nil, nil, c.unreachableError(req, err, true)
	}
	return body, res.Header, nil
}

// callJSON sends a request with the JSON of in, which may be nil, and decodes the response.
func callJSON[T any](ctx context.Context, c *Client, method string, u *url.URL, in any) (out T, err error) {
	var body []byte
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return out, fmt.Errorf("encode request: %w", err)
		}
	}
	req, err := c.newRequest(ctx, method, u, body)
	if err != nil {
		return out, err
	}
	answer, err := c.doRequest(req)
	if err != nil {
		return out, err
	}
	var envelope struct{ Data *json.RawMessage }
	if json.Unmarshal(answer, &envelope) != nil || envelope.Data == nil || json.Unmarshal(answer, &out) != nil {
		return out, foreignError(u, http.StatusOK, answer)
	}
	return out, nil
}
