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

// Post sends a JSON body to a path below the base address. The response contains a stream.
func (e Exchange) Post(ctx context.Context, path string, body any) (*http.Response, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpointOf(e.Base, path), &buf)
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
