// Package web contains the tool http_request. Other packages decide where requests may go, and
// insert the credentials.
package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/text/render"
	"github.com/parley-server/parley/internal/tool"
)

// The limits of a request's duration, up to the last byte of its response.
const (
	DefaultTime = 30 * time.Second
	MaxTime     = 120 * time.Second
)

// maxAnswer is how many bytes of a response are read.
const maxAnswer = 1 << 20

// Web sends requests.
type Web interface {
	// Do sends a request to an allowed destination, with the values of the run's credentials in
	// place of their placeholders. It follows no redirect, and the response contains no secrets. A
	// refusal is a tool.Refusal.
	Do(call tool.Call, req *http.Request) (*http.Response, error)
	// Placeholder returns the placeholder of a credential for a request.
	Placeholder(ctx context.Context, name string) (string, error)
}

// Tool returns the tool over w.
func Tool(w Web) tool.Tool { return request{w} }

type request struct{ web Web }

// Spec implements tool.Tool.
func (request) Spec() tool.Spec {
	return tool.Spec{
		Name: "http_request",
		Description: "Make one HTTP request to a host that the workspace allows, and read the answer. Redirects are not followed: the " +
			"answer says where they lead. " +
			"Where a credential of this run belongs, write ${NAME}: its value is put in on the way, for its own hosts only, and you never see it.",
		Schema: inputSchema,
	}
}

// Summary implements tool.Summarizer.
func (request) Summary(raw json.RawMessage) string {
	in, wrong := parseInput(raw)
	if wrong != "" {
		return "make an HTTP request"
	}
	return in.Method + " " + render.Argument(in.URL, maxShown)
}

// Call implements tool.Tool.
func (t request) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	in, wrong := parseInput(call.Input)
	if wrong != "" {
		return tool.Reject(wrong), nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, in.limit(), errTime)
	defer cancel()
	req, err := t.request(ctx, in)
	if err != nil {
		return tool.Result{}, err
	}
	res, err := t.web.Do(call, req)
	if err == nil {
		defer res.Body.Close()
		var out string
		if out, err = describe(res); err == nil {
			return tool.Result{OK: res.StatusCode < 400, Output: out}, nil
		}
	}
	if context.Cause(ctx) == errTime {
		return tool.Reject(fmt.Sprintf("The answer was not complete within %d seconds.", in.limit()/time.Second)), nil
	}
	return tool.Result{}, err
}

const errTime = tool.Refusal("the request's time is over")

// reference is a credential in a call's input.
var reference = regexp.MustCompile(`\$\{([A-Za-z0-9_]+)\}`)

// request builds the request, with placeholders for its credentials.
func (t request) request(ctx context.Context, in input) (*http.Request, error) {
	var failed error
	named := func(text string, escape func(string) string) string {
		return reference.ReplaceAllStringFunc(text, func(ref string) string {
			stands, err := t.web.Placeholder(ctx, ref[2:len(ref)-1])
			if err != nil {
				failed = err
			}
			return escape(stands)
		})
	}
	same := func(s string) string { return s }
	address := named(in.URL, url.QueryEscape)
	body := named(in.body, same)
	req, err := http.NewRequestWithContext(ctx, in.Method, address, strings.NewReader(body))
	if err != nil {
		return nil, tool.Refusal(`"url" is not an address like https://api.example.com/v1/items.`)
	}
	if body == "" {
		req.Body, req.GetBody, req.ContentLength = http.NoBody, nil, 0
	} else if in.json {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "Parley")
	for name, value := range in.Headers {
		req.Header.Set(name, named(value, same))
	}
	return req, failed
}

// shownHeaders are the response headers that the model sees.
var shownHeaders = []string{"Content-Type", "Location", "Retry-After", "Link", "ETag", "Last-Modified", "WWW-Authenticate", "Allow"}

// describe formats a response as text.
func describe(res *http.Response) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP %d %s\n", res.StatusCode, http.StatusText(res.StatusCode))
	names := make([]string, 0, len(res.Header))
	for name := range res.Header {
		if slices.Contains(shownHeaders, name) || strings.Contains(name, "Ratelimit") || strings.HasPrefix(name, "X-") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(res.Header[name], ", "))
	}
	var body excerpt
	if _, err := io.Copy(&body, res.Body); err != nil && !body.cut {
		return "", err
	}
	switch {
	case len(body.text) == 0:
	case !textual(res.Header.Get("Content-Type"), body.text):
		fmt.Fprintf(&b, "\n[the body is no text; it is not shown]")
	case body.cut:
		fmt.Fprintf(&b, "\n%s\n[cut here: the answer is longer than %d bytes; fetch it with curl in bash to work on all of it]",
			body.text, maxAnswer)
	default:
		fmt.Fprintf(&b, "\n%s", body.text)
	}
	return b.String(), nil
}

// excerpt keeps the beginning of a body and drops the rest. It implements redact.Marker and counts
// the bytes that the server sent, not those of the marks: otherwise the place of the cut would
// reveal whether the body contained a secret's value.
type excerpt struct {
	text []byte
	size int // bytes of the body in text
	cut  bool
}

var errCut = errors.New("the body is longer than is read of it")

// Write implements io.Writer.
func (e *excerpt) Write(p []byte) (int, error) {
	n := min(len(p), max(maxAnswer-e.size, 0))
	e.text = append(e.text, p[:n]...)
	e.size += n
	if n < len(p) {
		e.cut = true
		return n, errCut
	}
	return n, nil
}

// WriteMark implements redact.Marker.
func (e *excerpt) WriteMark(mark string, length int) error {
	if e.size >= maxAnswer {
		e.cut = true
		return errCut
	}
	e.text = append(e.text, mark...)
	e.size += length
	return nil
}

// textual reports whether a body can be read as text, by its content type and its content.
func textual(contentType string, body []byte) bool {
	kind, _, _ := mime.ParseMediaType(contentType)
	if strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "json") || strings.HasSuffix(kind, "xml") {
		return true
	}
	for len(body) > maxAnswer-utf8.UTFMax && !utf8.Valid(body) { // the last character may be incomplete
		body = body[:len(body)-1]
	}
	return utf8.Valid(body) && !strings.ContainsRune(string(body), 0)
}
