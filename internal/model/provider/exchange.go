package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// Exchange sends requests to one server. It follows no redirect, retries nothing and reads nothing
// from the environment.
type Exchange struct {
	Service Service
	Client  *http.Client
	Base    string      // a validated address
	Header  http.Header // of each request
}

// Call is one request.
type Call struct {
	Method, Path string // the path is below the base address
	Query        url.Values
	Body         any // becomes JSON; nil: none
}

// Post sends a JSON body to a path below the base address. The response contains a stream.
func (e Exchange) Post(ctx context.Context, path string, body any) (*http.Response, error) {
	return e.Do(ctx, Call{Method: http.MethodPost, Path: path, Body: body})
}

// Do sends a request. The response contains a stream.
func (e Exchange) Do(ctx context.Context, c Call) (*http.Response, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if c.Body != nil {
		if err := enc.Encode(c.Body); err != nil {
			return nil, err
		}
	}
	address := endpointOf(e.Base, c.Path)
	if c.Query != nil {
		address += "?" + c.Query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, c.Method, address, &buf)
	if err != nil {
		return nil, err
	}
	for name, values := range e.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json") // as the providers' own clients do, also for a stream
	req.Header.Set("User-Agent", "Parley")
	return e.Service.Send(req, e.Client.Do)
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
