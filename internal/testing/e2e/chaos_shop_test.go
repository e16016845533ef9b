package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// chaosShop is the server of a tool that must not run twice: it counts the requests of each call.
type chaosShop struct {
	bad atomic.Bool // responses are slow, and every other one is an error

	mu    sync.Mutex
	calls map[string]int // requests by tool_use_id
}

// openShop starts the server and registers its tool, book.
func (c *chaosRun) openShop() {
	c.t.Helper()
	c.shop = &chaosShop{calls: make(map[string]int)}
	h := httptest.NewServer(c.shop)
	c.t.Cleanup(h.Close)
	address := strings.Replace(h.URL, "127.0.0.1", "localhost", 1)
	c.w.env = []string{"PARLEY_EGRESS_ALLOW=" + pinOf(c.t, address)}
	file := filepath.Join(c.dir, "book.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "description: Books.\nmethod: POST\nurl: %s/book\n", address), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.w.parley(c.t, "tools", "add", "book", "--http", "@"+file, "--workspace", "w")
}

// ServeHTTP implements http.Handler.
func (s *chaosShop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	s.calls[r.Header.Get("Webhook-Id")]++
	n := len(s.calls)
	s.mu.Unlock()
	pause := 100 * time.Millisecond
	if s.bad.Load() {
		pause *= 15
	}
	select {
	case <-time.After(pause):
	case <-r.Context().Done():
	}
	if s.bad.Load() && n%2 == 0 {
		w.WriteHeader(http.StatusInternalServerError)
	}
	fmt.Fprint(w, "booked")
}

// checkOnce checks that no call reached the shop twice.
func (s *chaosShop) checkOnce(c *chaosRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, n := range s.calls {
		if n > 1 {
			c.violation("the tool call %s had its effect %d times", id, n)
		}
	}
}
