package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/parley-server/parley/internal/model/provider"
	"github.com/parley-server/parley/internal/sse"
)

// client sends requests to one server and reads their streams. It follows no
// redirect, retries nothing and reads nothing from the environment.
type client struct {
	http *http.Client
	key  string
	base string
	send func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error)
}

// endpointOf returns the address of an API under a validated base URL.
func endpointOf(base, path string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	if u.Path != "" && !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	return u.ResolveReference(&url.URL{Path: path}).String()
}

// openStream sends a request and returns the stream of its response.
func (c *client) openStream(ctx context.Context, path string, body any) (*chunkStream, error) {
	res, err := c.post(ctx, path, body)
	if err != nil {
		return nil, err
	}
	return &chunkStream{body: res.Body, frames: sse.NewReader(res.Body), requestID: provider.RequestID(res.Header)}, nil
}

// post sends a request. The caller closes the body of the response.
func (c *client) post(ctx context.Context, path string, body any) (*http.Response, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpointOf(c.base, path), &buf)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json") // as OpenAI's own clients do, also for a stream
	req.Header.Set("User-Agent", "Parley")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	return c.send(req, c.http.Do)
}

// chunkStream reads the chunks of one reply. The underlying response limits its size.
type chunkStream struct {
	body      io.Closer
	frames    *sse.Reader
	requestID string
}

// Close ends the reply, complete or not.
func (s *chunkStream) Close() { _ = s.body.Close() }

// reportedError is the event with which a server reports that the reply failed.
type reportedError struct{ data []byte }

func (*reportedError) Error() string { return "error event in the stream" }

var done = []byte("[DONE]")

// nextChunk returns the next chunk, or io.EOF at the end of the stream. Fields of the wrong
// type count as absent.
func (s *chunkStream) nextChunk() (c chatChunk, err error) {
	frame, err := s.frames.Next()
	if err != nil {
		return c, err
	}
	if bytes.HasPrefix(frame.Data, done) {
		return c, io.EOF
	}
	err = json.Unmarshal(frame.Data, &c)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		err = nil
	}
	if err == nil && len(c.Error) > 0 {
		err = &reportedError{frame.Data}
	}
	return c, err
}
