package egress_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestAnswersOfARunAreBounded uses endless responses, and compressed ones that are small only until
// they are decompressed.
func TestAnswersOfARunAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, 8<<20))
	z.Close()
	w.hook = func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/said":
			rw.Header().Set("Content-Length", fmt.Sprint(1<<20+1))
		case "/gzip":
			rw.Header().Set("Content-Encoding", "gzip")
			_, _ = rw.Write(bomb.Bytes())
		case "/header":
			rw.Header().Set("X-Large", strings.Repeat("x", 2*egress.MaxHeader))
		default:
			for r.Context().Err() == nil {
				if _, err := rw.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		}
	}
	r := w.run(t, egress.RunConfig{})
	r.Bound(1<<20, 1<<20, egress.MaxConnections)
	for _, d := range doors(t, r) {
		refusedWith(t, d, d.get(t, "https://api.test/said"), http.StatusBadGateway, "The answer of api.test is larger than 1 MiB.")
		for _, path := range []string{"/gzip", "/endless"} {
			if a := d.get(t, "https://api.test"+path); a.err == nil || len(a.body) > 1<<20 || d.name == "do" && !errors.Is(a.err,
				egress.ErrTooLarge) {
				t.Errorf("%s %s: %d bytes, %v", d.name, path, len(a.body), a.err)
			}
		}
		if a := d.get(t, "https://api.test/header"); a.err == nil && a.status != http.StatusBadGateway {
			t.Errorf("%s: %d", d.name, a.status)
		}
	}
}

// TestRequestsAreBounded sends bodies that are too large: with a length, without one, and where
// bodies are searched.
func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	r, searched := w.run(t, egress.RunConfig{}), w.run(t, egress.RunConfig{Credentials: []egress.Credential{key(func(c *egress.Credential) {
		c.InBody = true
	})}})
	r.Bound(1<<20, 1<<20, egress.MaxConnections)
	large := strings.Repeat("x", egress.MaxSearchedBody+1)
	for _, d := range doors(t, r) {
		if a := d.send(t, http.MethodPost, "https://api.test/", large[:1<<20], nil); a.status != 200 {
			t.Errorf("%s: %s", d.name, a.err)
		}
		refusedWith(t, d, d.send(t, http.MethodPost, "https://api.test/", large[:1<<20+1], nil), http.StatusRequestEntityTooLarge,
			"The body is larger than 1 MiB.")
		a := d.send(t, http.MethodPost, "https://api.test/", large, func(r *http.Request) { r.ContentLength = -1 })
		if a.err == nil && a.status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d %.100q", d.name, a.status, a.body)
		}
		a = d.send(t, http.MethodGet, "https://api.test/?"+large[:egress.MaxRequestURL], "", nil)
		refusedWith(t, d, a, http.StatusRequestURITooLong, "The URL is longer than 8192 bytes.")
		a = d.send(t, http.MethodGet, "https://api.test/", "", func(r *http.Request) { r.Header.Set("X", large[:egress.MaxHeader]) })
		refusedWith(t, d, a, http.StatusRequestHeaderFieldsTooLarge, "The header is larger than 64 KiB.")
	}
	for _, d := range doors(t, searched) {
		if a := d.send(t, http.MethodPost, "https://api.test/", large[1:], nil); a.status != 200 {
			t.Errorf("%s: %s", d.name, a.err)
		}
		a := d.send(t, http.MethodPost, "https://api.test/", large, func(r *http.Request) { r.Header.Set("X-Key", holder) })
		refusedWith(t, d, a, http.StatusRequestEntityTooLarge, "The body is larger than 8 MiB.")
	}
	for _, n := range w.noted() {
		if refused := n.Decision != egress.Sent; refused && (len(n.Credentials) != 0 || n.final != n.Decision) {
			t.Errorf("recorded: %+v", n)
		}
	}
	for _, got := range w.arrivals() {
		if got.method == http.MethodPost && len(got.body) > egress.MaxSearchedBody {
			t.Errorf("%d bytes arrived", len(got.body))
		}
	}
}

// TestConnectionsAreBounded opens more connections than a run may have, over two listeners: one
// more is served only after another was closed.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	r := w.run(t, egress.RunConfig{})
	r.Bound(1<<20, 1<<20, 2)
	one, two := proxy(t, r), proxy(t, r)
	first, _, status := connect(t, one, "api.test:443")
	_, _, other := connect(t, two, "api.test:443")
	if status != 200 || other != 200 {
		t.Fatalf("%d %d", status, other)
	}
	for _, at := range []string{one, two} {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(c)
		c.Close()
		if !strings.HasPrefix(string(text), "HTTP/1.1 503 ") || !strings.HasSuffix(string(text),
			"at most 128 connections are open at a time.\n") {
			t.Errorf("a third connection: %q, %v", text, err)
		}
	}
	first.Close()
	for status = 0; status != 200; { // until the proxy has seen it
		_, _, status = connect(t, two, "api.test:443")
	}
}

// TestCloseEndsRequests closes a run while a server does not respond.
func TestCloseEndsRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	arrived := make(chan struct{}, 1)
	w.hook = func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}
	r := w.run(t, egress.RunConfig{})
	for _, d := range doors(t, r) {
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			a := d.send(t, http.MethodGet, "https://api.test/", "", func(req *http.Request) { *req = *req.WithContext(ctx) })
			if a.err == nil {
				t.Errorf("%s: %s", d.name, a.text())
			}
		})
		wait.Receive(t, "an arrival", arrived)
		cancel()
		wait.Until(t, "all goroutines", wg.Wait)
	}
	var wg sync.WaitGroup
	d := door{"do", r.Do}
	wg.Go(func() {
		if a := d.get(t, "https://api.test/"); !errors.Is(a.err, context.Canceled) {
			t.Errorf("%s", a.text())
		}
	})
	wait.Receive(t, "an arrival", arrived)
	r.Close()
	wait.Until(t, "all goroutines", wg.Wait)
	if a := d.get(t, "https://api.test/"); a.err == nil {
		t.Error("a closed run sends requests")
	}
}

// TestServeEndsWithItsListener has a tunnel, an idle connection and a request in progress when the
// listener is closed or ctx ends.
func TestServeEndsWithItsListener(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"listener", "context"} {
		w := newWorld(t, egress.Config{})
		arrived := make(chan struct{}, 1)
		w.hook = func(_ http.ResponseWriter, r *http.Request) {
			arrived <- struct{}{}
			<-r.Context().Done()
		}
		r := w.run(t, egress.RunConfig{})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Serve(ctx, l) }()
		at := l.Addr().String()
		idle, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		silent, _, _ := connect(t, at, "api.test:443") // without a handshake
		busy, err := tunnel(t, r, at, "api.test")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(busy, "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
		wait.Receive(t, "an arrival", arrived)
		if how == "listener" {
			l.Close()
		} else {
			cancel()
		}
		if err := wait.Receive(t, "the end", done); err != nil {
			t.Errorf("%s: %v", how, err)
		}
		for _, c := range []net.Conn{idle, silent, busy} {
			if rest, err := io.ReadAll(c); len(rest) > 0 && !strings.HasPrefix(string(rest), "HTTP/1.1 50") {
				t.Errorf("%s: %q %v", how, rest, err)
			}
			c.Close()
		}
		if _, err := net.Dial("tcp", at); err == nil {
			t.Errorf("%s: the port is still open", how)
		}
		cancel()
	}
}
