package egress

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// hop are the headers that apply only to the next hop.
var hop = []string{"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// unasked are headers that would make the server send a response that cannot be redacted,
// compressed or partial, and headers that make claims about the client.
var unasked = []string{"Accept-Encoding", "Range", "If-Range", "Expect", "Forwarded", "Host", "Content-Length"}

// cleanRequest returns a copy of a request's header that may leave.
func cleanRequest(h http.Header) http.Header {
	out := cleanHeader(h, unasked, "Proxy-", "X-Forwarded-")
	if out.Get("User-Agent") == "" {
		out.Set("User-Agent", "Parley")
	}
	return out
}

// cleanAnswer returns a copy of a response's header without the headers between the server and the
// proxy. Its length is known after the redaction.
func cleanAnswer(h http.Header) http.Header {
	return cleanHeader(h, []string{"Alt-Svc", "Content-Encoding", "Content-Length"}, "Proxy-")
}

func cleanHeader(h http.Header, drop []string, prefixes ...string) http.Header {
	var named []string // headers that the sender declares as hop-by-hop
	for name, values := range h {
		if strings.EqualFold(name, "Connection") {
			for _, v := range strings.Split(strings.Join(values, ","), ",") {
				named = append(named, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(v)))
			}
		}
	}
	out := make(http.Header, len(h))
	for name, values := range h {
		key := textproto.CanonicalMIMEHeaderKey(name)
		within := func(p string) bool { return strings.HasPrefix(key, p) }
		if slices.Contains(hop, key) || slices.Contains(drop, key) || slices.Contains(named, key) || slices.ContainsFunc(prefixes, within) {
			continue
		}
		out[key] = append(out[key], values...)
	}
	return out
}

// isUpgrade reports whether a request wants another protocol.
func isUpgrade(h http.Header) bool {
	for name := range h {
		if strings.EqualFold(name, "Upgrade") {
			return true
		}
	}
	return false
}

// isToken reports whether a text can be the name of a header.
func isToken(s string) bool {
	return s != "" && strings.Trim(s, "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
}

// isControlled reports whether a text has characters that end a header's value, or that
// servers read differently.
func isControlled(s string) bool {
	return strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}
