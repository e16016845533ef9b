package apicheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"

	"github.com/parley-server/parley/internal/sse"
)

// Transport compares every response with the document: status, code, headers, body, and each
// frame of a stream.
type Transport struct {
	T    testing.TB
	Next http.RoundTripper
	Doc  *Document
}

// RoundTrip implements http.RoundTripper.
func (c *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := c.Next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if id := res.Header.Get("X-Request-Id"); id == "" {
		c.T.Errorf("%s %s: %d without X-Request-Id", r.Method, r.URL, res.StatusCode)
	}
	route, _, err := c.Doc.router.FindRoute(canonical(r))
	if err != nil {
		route = nil
	}
	streaming := strings.HasPrefix(res.Header.Get("Content-Type"), streamType)
	if streaming {
		res.Body = &frameChecker{Transport: c, body: res.Body, name: r.Method + " " + r.URL.Path, schema: frameSchema(route, res.StatusCode)}
	} else {
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil { // the test reads the data that arrived, and the error
			res.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), iotest.ErrReader(err)))
			return res, nil
		}
		res.Body = io.NopCloser(bytes.NewReader(body))
	}
	if err := c.check(r, res, route, streaming); err != nil {
		c.T.Errorf("%s %s: %d is not what the document says: %v", r.Method, r.URL, res.StatusCode, err)
	}
	return res, nil
}

const streamType = "text/event-stream"

// canonical returns a request for the documented path of an operation that has other paths: clients
// of OpenAI and of A2A append to their configured address.
func canonical(r *http.Request) *http.Request {
	path := r.URL.EscapedPath()
	if strings.HasPrefix(path, "/v1/") {
		path = "/openai" + path
	}
	if path == "/a2a/" {
		path = "/a2a"
	}
	if model, ok := strings.CutPrefix(path, "/openai/v1/models/"); ok {
		path = "/openai/v1/models/" + strings.ReplaceAll(model, "/", "%2F")
	}
	if path == r.URL.EscapedPath() {
		return r
	}
	other := r.Clone(r.Context())
	other.URL = &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: path, RawQuery: r.URL.RawQuery}
	return other
}

// frameSchema returns the schema of the frames that an operation sends with a status, or nil.
func frameSchema(route *routers.Route, status int) *openapi3.Schema {
	if route == nil {
		return nil
	}
	if res := route.Operation.Responses.Status(status); res != nil && res.Value.Content[streamType] != nil {
		return res.Value.Content[streamType].Schema.Value
	}
	return nil
}

func (c *Transport) check(r *http.Request, res *http.Response, route *routers.Route, streaming bool) error {
	if route == nil || r.Method == http.MethodOptions || res.StatusCode == http.StatusMethodNotAllowed {
		return c.unrouted(r, res)
	}
	if streaming {
		return c.Doc.checkResponse(route.Operation, res.StatusCode, res.Header, nil)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body = io.NopCloser(bytes.NewReader(body))
	return c.Doc.checkResponse(route.Operation, res.StatusCode, res.Header, body)
}

// unrouted checks responses that belong to no operation.
func (c *Transport) unrouted(r *http.Request, res *http.Response) error {
	body, _ := io.ReadAll(res.Body)
	res.Body = io.NopCloser(bytes.NewReader(body))
	if ref := c.Doc.Components.Responses["MethodNotAllowed"]; res.StatusCode == http.StatusMethodNotAllowed {
		for name, h := range ref.Value.Headers {
			if h.Value.Required && res.Header.Get(name) == "" {
				return fmt.Errorf("no %s", name)
			}
		}
	}
	if len(body) == 0 && (res.StatusCode == http.StatusNoContent || res.Request.Method == http.MethodHead) {
		return nil
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return fmt.Errorf("%q: %w", body, err)
	}
	if strings.HasPrefix(canonical(r).URL.Path, "/openai") {
		return c.Doc.CheckSchema("OpenAIError", value)
	}
	return c.Doc.CheckSchema("ErrorResponse", value)
}

// frameChecker validates the frames of a stream as they are read.
type frameChecker struct {
	*Transport
	body   io.ReadCloser
	name   string
	schema *openapi3.Schema // schema of a frame; nil: the document describes no stream here
	seen   bytes.Buffer
}

func (f *frameChecker) Read(p []byte) (int, error) {
	n, err := f.body.Read(p)
	f.seen.Write(p[:n])
	if i := bytes.LastIndex(f.seen.Bytes(), []byte("\n\n")); i >= 0 {
		f.frames(f.seen.Next(i + 2))
	}
	return n, err
}

func (f *frameChecker) Close() error { return f.body.Close() }

func (f *frameChecker) frames(wire []byte) {
	if bytes.ContainsRune(wire, '\r') {
		f.T.Errorf("%s: a carriage return in %q", f.name, wire)
	}
	r := sse.NewReader(bytes.NewReader(wire))
	for {
		fr, err := r.Next()
		if err != nil {
			return
		}
		frame := map[string]any{"data": string(fr.Data)}
		if fr.Event != "message" {
			frame["event"] = fr.Event
		}
		if fr.ID != "" {
			frame["id"] = fr.ID
		}
		if fr.Retry != 0 {
			frame["retry"] = float64(fr.Retry.Milliseconds())
		}
		// the check of the response has already failed; or the document describes the stream in words
		if f.schema == nil || f.schema.Type.Is("string") {
			return
		}
		if err := f.Doc.checkFrame(f.schema, frame); err != nil {
			f.T.Errorf("%s: frame %s %s %.500s: %v", f.name, fr.Event, fr.ID, fr.Data, err)
		}
	}
}
