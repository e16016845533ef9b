package egress_test

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/testing/egresstest"
)

// site is a TLS server that a pin makes reachable as example.com.
func site(t *testing.T, h http.HandlerFunc, allow ...string) (*egress.Guard, *httptest.Server) {
	t.Helper()
	srv := httptest.NewTLSServer(h)
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	z := egresstest.Serve(t, "127.0.0.1:0", map[string][][]netip.Addr{"other.example": {egresstest.Addrs("127.0.0.1")}})
	allow = append(allow, "example.com:443="+srv.Listener.Addr().String())
	return guard(t, egress.Config{Allow: allow, Roots: roots, Resolver: z.Resolver()}), srv
}

func do(t *testing.T, c *egress.Client, r *http.Request) (int, string, error) {
	t.Helper()
	res, err := c.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), err
}

func request(t *testing.T, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRequestArrivesAsItWasChecked(t *testing.T) {
	t.Parallel()
	g, _ := site(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Host, " ", r.RequestURI, " ", r.UserAgent(), " ", r.Header.Get("Accept-Encoding"))
	})
	status, body, err := do(t, g.Client(egress.Limits{}), request(t, "https://EXAMPLE.com.:443/a?b=%2F#c"))
	if err != nil || status != 200 || body != "example.com /a?b=%2F Parley " {
		t.Errorf("%d %q %v", status, body, err)
	}
	if _, _, err := do(t, g.Client(egress.Limits{}), request(t, "http://example.com:443/")); err == nil {
		t.Error("a request was sent without TLS")
	}
}

// TestOldTLSIsRefused connects to a server that supports only obsolete versions of TLS.
func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = quiet
	srv.StartTLS()
	srv.TLS.MinVersion, srv.TLS.MaxVersion = 0x0301, 0x0302
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	g := guard(t, egress.Config{Allow: []string{"example.com:443=" + srv.Listener.Addr().String()}, Roots: roots})
	if err := get(t, g.Client(egress.Limits{}), "https://example.com/"); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("%v", err)
	}
}

func TestForeignCertificateIsRefused(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = quiet
	srv.StartTLS()
	t.Cleanup(srv.Close)
	g := guard(t, egress.Config{Allow: []string{"example.com:443=" + srv.Listener.Addr().String()}})
	err := get(t, g.Client(egress.Limits{}), "https://example.com/")
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); !unknown {
		t.Errorf("%v", err)
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	c := egresstest.NewCanary(t)
	var hits atomic.Int32
	g, _ := site(t, func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		if r.Header.Get("Referer") != "" {
			t.Error("the redirect's target receives the origin")
		}
		var n int
		switch {
		case r.URL.Path == "/end":
			fmt.Fprint(w, "here")
		case r.URL.Path == "/private":
			http.Redirect(w, r, "https://127.0.0.1:"+c.Port+"/", http.StatusFound)
		case r.URL.Path == "/inside":
			http.Redirect(w, r, "https://other.example:"+c.Port+"/", http.StatusTemporaryRedirect)
		case r.URL.Path == "/plain":
			http.Redirect(w, r, "http://example.com/end", http.StatusMovedPermanently)
		case r.URL.Path == "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusMovedPermanently)
		default:
			if fmt.Sscanf(r.URL.Path, "/%d", &n); n == 1 {
				http.Redirect(w, r, "/end", http.StatusFound)
			} else {
				http.Redirect(w, r, fmt.Sprintf("/%d", n-1), http.StatusFound)
			}
		}
	})
	none, three := g.Client(egress.Limits{}), g.Client(egress.Limits{Redirects: 3})
	if status, _, err := do(t, none, request(t, "https://example.com/1")); err != nil || status != http.StatusFound || hits.Load() != 1 {
		t.Errorf("without redirects: %d after %d requests, %v", status, hits.Load(), err)
	}
	if status, body, err := do(t, three, request(t, "https://example.com/3")); err != nil || status != 200 || body != "here" {
		t.Errorf("three redirects: %d %q %v", status, body, err)
	}
	for _, path := range []string{"/4", "/private", "/inside", "/plain", "/file"} {
		err := get(t, three, "https://example.com"+path)
		if _, refused := errors.AsType[*egress.Error](err); !refused {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestAnswerIsBounded(t *testing.T) {
	t.Parallel()
	g, _ := site(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/chunks" {
			w.(http.Flusher).Flush()
		}
		fmt.Fprint(w, "12345678")
	})
	for limit, want := range map[int64]error{0: nil, 9: nil, 8: nil, 7: egress.ErrTooLarge, 1: egress.ErrTooLarge} {
		for _, path := range []string{"/", "/chunks"} {
			_, body, err := do(t, g.Client(egress.Limits{Body: limit}), request(t, "https://example.com"+path))
			if !errors.Is(err, want) || limit > 0 && int64(len(body)) > limit || want == nil && body != "12345678" {
				t.Errorf("%s with %d bytes: %q %v", path, limit, body, err)
			}
		}
	}
	endless, _ := site(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := fmt.Fprint(w, strings.Repeat("x", 1<<10)); err != nil {
				return
			}
		}
	})
	if _, _, err := do(t, endless.Client(egress.Limits{Body: 1 << 20}), request(t, "https://example.com/")); !errors.Is(err,
		egress.ErrTooLarge) {
		t.Errorf("endless: %v", err)
	}
}

func TestSilentServerIsLeft(t *testing.T) {
	t.Parallel()
	g, _ := site(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	if err := get(t, g.Client(egress.Limits{Time: 50e6}), "https://example.com/"); err == nil {
		t.Error("the request succeeded")
	}
}
