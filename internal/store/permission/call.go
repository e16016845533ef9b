package permission

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/placeholder"
	"github.com/parley-server/parley/internal/text"
)

// call is the request of an http_request call, as far as it is unambiguous.
type call struct {
	method, scheme, host string
	path                 string // as sent, without the first slash
	query, body          bool
	headers              map[string]string
	credential           bool // the address or a header names a credential
}

// treacherous are parts of headers that change the effective method, host or path of a request.
var treacherous = []string{"host", "connection", "content-length", "transfer-encoding", "trailer", "upgrade", "expect", "te",
	"forwarded", "method", "override", "original-", "rewrite", "proxy-", "x-forwarded"}

func readCall(input json.RawMessage) (c call, ok bool) {
	m, ok := decodeMembers(input, "method", "url", "headers", "body", "timeout_seconds")
	if !ok {
		return c, false
	}
	c.method, c.body = "GET", m["body"] != nil
	if m["method"] != nil {
		if c.method, ok = stringOf(m["method"]); !ok {
			return c, false
		}
	}
	address, ok := stringOf(m["url"])
	if !ok || !c.readAddress(address) {
		return c, false
	}
	if m["headers"] != nil && !c.parseHeaders(m["headers"]) {
		return c, false
	}
	c.credential = c.credential || placeholder.Named(address)
	return c, !overridesMethod(address) && (!c.body || !overridesBody(m["body"]))
}

// overridesMethod reports whether a form contains _method, which some frameworks treat as the
// request's method.
func overridesMethod(form string) bool {
	plain, err := url.QueryUnescape(form)
	return strings.Contains(form, "_method") || err == nil && strings.Contains(plain, "_method")
}

func overridesBody(raw json.RawMessage) bool {
	if form, ok := stringOf(raw); ok {
		return overridesMethod(form)
	}
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return true
	}
	unescaped, err := json.Marshal(value)
	return err != nil || overridesMethod(string(unescaped))
}

// readAddress parses a URL that every parser reads in the same way.
func (c *call) readAddress(raw string) bool {
	if !text.IsPrintable(raw) || strings.ContainsAny(raw, " \"<>\\^`{|}#") || len(raw) > 8<<10 {
		return false
	}
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || u.Opaque != "" || u.String() != raw {
		return false
	}
	c.scheme, c.host = u.Scheme, strings.ToLower(u.Host)
	if c.scheme == "https" {
		c.host = strings.TrimSuffix(c.host, ":443")
	}
	c.query = u.RawQuery != "" || u.ForceQuery
	c.path = strings.TrimPrefix(u.EscapedPath(), "/")
	if !host.MatchString(c.host) || c.scheme != "https" && c.scheme != "http" {
		return false
	}
	lower := strings.ToLower(c.path)
	for _, trick := range []string{"%2f", "%2e", "%5c", "%25", "%00", "%3b", ";"} {
		if strings.Contains(lower, trick) {
			return false
		}
	}
	segments := strings.Split(c.path, "/")
	for i, s := range segments {
		if s == "." || s == ".." || s == "" && i < len(segments)-1 {
			return false
		}
	}
	return true
}

// parseHeaders parses the headers of a call: an object of strings.
func (c *call) parseHeaders(raw json.RawMessage) bool {
	if json.Unmarshal(raw, &c.headers) != nil {
		return false
	}
	for name, value := range c.headers {
		lower := strings.ToLower(name)
		if !text.IsPrintable(name) || !text.IsPrintable(value) {
			return false
		}
		for _, t := range treacherous {
			if lower == t || len(t) > 2 && strings.Contains(lower, t) {
				return false
			}
		}
		c.credential = c.credential || placeholder.NamedInHeader(value)
	}
	return true
}

// isReadOnly reports whether a call only fetches, and without a credential.
func (c call) isReadOnly() bool {
	for name := range c.headers {
		if !slices.Contains([]string{"accept", "accept-language", "user-agent", "range", "if-none-match", "if-modified-since"},
			strings.ToLower(name)) {
			return false
		}
	}
	return (c.method == "GET" || c.method == "HEAD") && !c.body && !c.credential
}
