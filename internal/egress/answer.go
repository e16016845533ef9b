package egress

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// cleanResponse removes credentials' values from a response's header and body. It rejects a
// response that cannot be searched. A value that can be guessed is searched only in responses to
// requests that carried it.
func (r *Run) cleanResponse(from *http.Response, used []*credential) (*http.Response, error) {
	empty := from.Request.Method == http.MethodHead || from.StatusCode == http.StatusNoContent || from.StatusCode == http.StatusNotModified
	refused := ""
	switch {
	case from.StatusCode < 200:
		refused = "switches to another protocol"
	case from.StatusCode == http.StatusPartialContent, isMultipart(from.Header):
		refused = "comes in parts, which was not asked for, and cannot be searched for secrets"
	case !empty && isEncoded(from.Header):
		refused = "is compressed in a way that was not asked for, and cannot be searched for secrets"
	case from.ContentLength > r.maxAnswer:
		refused = fmt.Sprintf("is larger than %d MiB", r.maxAnswer>>20)
	}
	if refused != "" {
		from.Body.Close()
		return nil, newRefusal(RefusedAnswer, http.StatusBadGateway, "The answer of %s %s.", from.Request.URL.Host, refused)
	}
	to := &http.Response{
		Status:     fmt.Sprintf("%d %s", from.StatusCode, http.StatusText(from.StatusCode)), // the server's own reason phrase is ignored
		StatusCode: from.StatusCode, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: cleanAnswer(from.Header), ContentLength: -1, Uncompressed: from.Uncompressed,
	}
	if empty {
		to.ContentLength = from.ContentLength
	}
	body := &limited{from.Body, r.maxAnswer, ErrTooLarge}
	r.cfg.Redact.Header(to.Header)
	text := r.cfg.Redact.Reader(body)
	for _, c := range used {
		c.own.Header(to.Header)
		text = c.own.Reader(text)
	}
	to.Body = redacted{text, body}
	return to, nil
}

// redacted is the body of a response.
type redacted struct {
	io.Reader
	io.Closer
}

// WriteTo makes redact pass marks separately to a redact.Marker.
func (r redacted) WriteTo(dst io.Writer) (int64, error) { return io.Copy(dst, r.Reader) }

// isEncoded reports whether the receiver has to decode a body.
func isEncoded(h http.Header) bool {
	for _, v := range h.Values("Content-Encoding") {
		if v = strings.TrimSpace(v); v != "" && !strings.EqualFold(v, "identity") {
			return true
		}
	}
	return false
}

// isMultipart reports whether a body consists of parts of another.
func isMultipart(h http.Header) bool {
	return slices.ContainsFunc(h.Values("Content-Type"), func(v string) bool {
		return strings.HasPrefix(strings.ToLower(strings.TrimSpace(v)), "multipart/byteranges")
	})
}
