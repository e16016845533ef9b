package egress

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"time"
)

// Limits bound one request.
type Limits struct {
	Time      time.Duration // for the whole request, up to the last byte; default 15 s
	Redirects int           // maximum number to follow; 0 returns the redirect itself
	Body      int64         // bytes of the response; 0: the caller stops reading
}

// Client makes requests that a guard allows. It stores no connection and no cookie.
type Client struct {
	http http.Client
	body int64
}

// Client returns a client with limits.
func (g *Guard) Client(l Limits) *Client {
	if l.Time <= 0 {
		l.Time = 15 * time.Second
	}
	tr := newTransport(g.DialContext, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: g.roots}, l.Time)
	tr.DisableCompression = true
	follow := func(_ *http.Request, via []*http.Request) error {
		switch {
		case l.Redirects == 0:
			return http.ErrUseLastResponse
		case len(via) > l.Redirects:
			return invalidRequest("The URL leads through more than %d redirects.", l.Redirects)
		}
		return nil
	}
	return &Client{http: http.Client{Transport: guarded{g, tr}, CheckRedirect: follow, Timeout: l.Time}, body: l.Body}
}

// ErrTooLarge is returned when a response exceeds the limit.
var ErrTooLarge = errors.New("the answer is too large")

// Do sends a request. The caller closes the response's body.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	res, err := c.http.Do(r)
	if err != nil || c.body == 0 {
		return res, err
	}
	if res.ContentLength > c.body {
		res.Body.Close()
		return nil, ErrTooLarge
	}
	res.Body = &limited{res.Body, c.body, ErrTooLarge}
	return res, nil
}

// guarded checks the URL of every request, including redirects.
type guarded struct {
	guard *Guard
	next  http.RoundTripper
}

func (t guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	u, err := t.guard.canonicalURL(r.URL)
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	out := r.Clone(r.Context())
	out.URL, out.Host = u, ""
	out.Header.Del("Referer") // a redirect would leak it
	if out.Header.Get("User-Agent") == "" {
		out.Header.Set("User-Agent", "Parley")
	}
	return t.next.RoundTrip(out)
}

// limited reads at most left bytes and then fails.
type limited struct {
	io.ReadCloser
	left   int64
	beyond error
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.ReadCloser.Read(p)
	if int64(n) > l.left {
		n, err = int(l.left), l.beyond
	}
	l.left -= int64(n)
	return n, err
}
