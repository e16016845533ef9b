package egress_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/redact"
	"github.com/parley-server/parley/internal/testing/egresstest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// blockedSite returns a world whose api.test does not read a body until unblock is closed.
func blockedSite(t *testing.T, memory int64) (w *world, arrived chan struct{}, unblock chan struct{}) {
	t.Helper()
	arrived, unblock = make(chan struct{}, 100), make(chan struct{})
	ca := egresstest.NewAuthority(t)
	at := ca.Site(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		select {
		case <-unblock:
		case <-r.Context().Done():
		}
		n, _ := io.Copy(io.Discard, r.Body)
		if n == 0 {
			w.WriteHeader(http.StatusBadRequest)
		}
	}), "api.test")
	return &world{guard: guard(t, egress.Config{Roots: ca.Roots(), Allow: []string{"api.test:443=" + at}, BodyMemory: memory})},
		arrived, unblock
}

// TestBodiesShareAMemory lets requests of two runs hold all memory for bodies: another request is
// rejected, and served when they are done.
func TestBodiesShareAMemory(t *testing.T) {
	t.Parallel()
	w, arrived, unblock := blockedSite(t, 2*egress.MaxSearchedBody)
	inBody := key(func(c *egress.Credential) { c.InBody = true })
	var runs []*egress.Run
	for range 3 {
		r := w.run(t, egress.RunConfig{Credentials: []egress.Credential{inBody}, Redact: redact.New()})
		runs = append(runs, r)
	}
	large := strings.Repeat("x", egress.MaxSearchedBody-len(holder)) + holder
	done := make(chan answer, 2)
	for _, r := range runs[:2] {
		go func() { done <- door{"do", r.Do}.send(t, http.MethodPost, "https://api.test/", large, nil) }()
	}
	for range 2 {
		select {
		case <-arrived:
		case <-time.After(time.Minute):
			t.Fatal("the requests did not arrive")
		}
	}
	runs[2].WaitForBodies(10 * time.Millisecond)
	d := door{"do", runs[2].Do}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, body := range []string{large, "small"} {
		a := d.send(t, http.MethodPost, "https://api.test/", body, func(r *http.Request) { *r = *r.WithContext(ctx) })
		refusedWith(t, d, a, http.StatusServiceUnavailable, "Other requests use all memory for bodies that may hold secrets.")
	}
	close(unblock)
	for range 2 {
		if a := wait.Receive(t, "the end", done); a.status != 200 {
			t.Error(a.text())
		}
	}
	runs[2].WaitForBodies(time.Minute)
	if a := d.send(t, http.MethodPost, "https://api.test/", large, nil); a.status != 200 {
		t.Error(a.text())
	}
}

// TestEveryRequestReturnsItsMemory sends more requests than fit into the memory, one after the
// other, which end in every way.
func TestEveryRequestReturnsItsMemory(t *testing.T) {
	t.Parallel()
	slow.Test(t, "measures memory")
	w := newWorld(t, egress.Config{BodyMemory: egress.MaxSearchedBody})
	r := w.run(t, egress.RunConfig{Credentials: []egress.Credential{key(func(c *egress.Credential) { c.InBody = true })}})
	large := strings.Repeat("x", egress.MaxSearchedBody-1)
	for range 2 {
		for _, d := range doors(t, r) {
			for name, edit := range map[string]func(*http.Request){
				"sent":           func(*http.Request) {},
				"of any length":  func(r *http.Request) { r.ContentLength = -1 },
				"an odd header":  func(r *http.Request) { r.Header.Set("Upgrade", "h2c") },
				"another host":   func(r *http.Request) { r.URL.Host = "elsewhere.test" },
				"broken off":     func(r *http.Request) { r.Body = io.NopCloser(io.MultiReader(strings.NewReader("x"), failing{})) },
				"a large header": func(r *http.Request) { r.Header.Set("X", strings.Repeat("x", egress.MaxHeader)) },
			} {
				a := d.send(t, http.MethodPost, "https://api.test/", large, edit)
				if name == "sent" && a.status != 200 || strings.Contains(a.text(), "Other requests use all memory") {
					t.Fatalf("%s, %s: %.300s", d.name, name, a.text())
				}
			}
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
