package egress

import (
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/parley-server/parley/internal/text"
)

// plan is a checked request before any value is in it.
type plan struct {
	request Request // the record of the request
	method  string
	url     *url.URL
	header  http.Header
	body    io.ReadCloser
	length  int64
	here    []*credential  // credentials for this host
	away    []*credential  // credentials for other hosts
	used    []*credential  // credentials whose values are inserted
	edits   []func() error // put the values in
}

// planRequest checks a request. It also returns a plan for a rejected one, for the record.
func (r *Run) planRequest(req *http.Request) (*plan, error) {
	p := &plan{method: req.Method, body: req.Body, length: req.ContentLength}
	if p.method == "" {
		p.method = http.MethodGet
	}
	p.request = Request{Method: r.redactForRecord(p.method, 32), Scheme: r.redactForRecord(req.URL.Scheme, 32),
		Host: r.redactForRecord(req.URL.Host, 260), Path: r.redactForRecord(req.URL.EscapedPath(), 1024), Decision: Sent}
	err := r.fillPlan(p, req)
	if err != nil {
		p.request.Decision, p.request.Credentials = decisionOf(err), nil
	}
	return p, err
}

func (r *Run) fillPlan(p *plan, req *http.Request) (err error) {
	if p.url, err = r.admitURL(req.URL); err != nil {
		return err
	}
	p.request.Scheme, p.request.Host = p.url.Scheme, p.url.Host
	if err := p.checkTarget(req, r.maxBody); err != nil {
		return err
	}
	name, port := targetOf(p.url)
	for i := range r.credentials {
		c := &r.credentials[i]
		mine := slices.ContainsFunc(c.hosts, func(h host) bool { return h.matchesHost(p.url.Scheme, name, port) })
		if mine && (p.url.Scheme == "https" || c.AllowHTTP) {
			p.here = append(p.here, c)
		} else {
			p.away = append(p.away, c)
		}
	}
	p.findCredentials(p.url.EscapedPath(), func(*credential) bool { return false })
	if err := p.searchHeader(req.Header); err != nil {
		return err
	}
	if err := p.searchQuery(); err != nil {
		return err
	}
	return r.searchBody(req.Context(), p)
}

// redactForRecord returns a part of a request as it may be recorded.
func (r *Run) redactForRecord(s string, limit int) string {
	return text.Truncate(text.Mask(r.cfg.RedactRecords.String(s)), limit)
}

// checkTarget rejects a request without a valid target.
func (p *plan) checkTarget(req *http.Request, limit int64) error {
	size, odd := 0, false
	for name, values := range req.Header {
		for _, v := range values {
			size += len(name) + len(v) + 4
			if !isToken(name) || isControlled(v) {
				odd = true
			}
		}
	}
	switch {
	case odd:
		return invalidRequest("A header has a character that no header has.")
	case req.Host != "" && !sameHost(req.Host, p.url):
		return newRefusal(RefusedRequest, http.StatusMisdirectedRequest, "The header Host names another host than the request is for.")
	case p.method == http.MethodConnect, p.method == http.MethodTrace, !isToken(p.method):
		return newRefusal(RefusedRequest, http.StatusMethodNotAllowed, "The method %.20q is not allowed.", p.method)
	case len(p.url.RequestURI()) > MaxRequestURL:
		return newRefusal(RefusedRequest, http.StatusRequestURITooLong, "The URL is longer than %d bytes.", MaxRequestURL)
	case size > MaxHeader:
		return newRefusal(RefusedRequest, http.StatusRequestHeaderFieldsTooLarge, "The header is larger than %d KiB.", MaxHeader>>10)
	case p.length > limit:
		return bodyTooLarge(limit)
	case isUpgrade(req.Header):
		return newRefusal(RefusedRequest, http.StatusNotImplemented, "A connection cannot be upgraded: requests and answers are plain HTTP.")
	}
	return nil
}

// sameHost reports whether a header Host names the host of a canonical URL.
func sameHost(header string, u *url.URL) bool {
	h, err := url.Parse(u.Scheme + "://" + header)
	if err != nil || h.Host != header {
		return false
	}
	name, addr, err := parseHost(h.Hostname())
	if err != nil {
		return false
	}
	if addr.IsValid() {
		name = addr.String()
	}
	port, err := portOf(h)
	wantName, wantPort := targetOf(u)
	return err == nil && name == wantName && port == wantPort
}

func bodyTooLarge(limit int64) error {
	return newRefusal(RefusedRequest, http.StatusRequestEntityTooLarge, "The body is larger than %d MiB.", limit>>20)
}
