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

// shopSecret is the value of the secret that clients provide.
const shopSecret = "sk-chaos-4f9b27c1d08e6a35"

// chaosShop is the server of tools that must not run twice: it counts the requests of each call. It
// also receives callbacks.
type chaosShop struct {
	url string
	bad atomic.Bool // responses are slow, and every other one is an error

	mu           sync.Mutex
	calls        map[string]int // requests by tool_use_id
	paid, unpaid int            // requests with the secret, and without
	reports      map[string][]string
}

// openShop starts the server and registers its tool, book.
func (c *chaosRun) openShop() {
	c.t.Helper()
	c.shop = &chaosShop{calls: map[string]int{}, reports: map[string][]string{}}
	h := httptest.NewServer(c.shop)
	c.t.Cleanup(h.Close)
	c.shop.url = strings.Replace(h.URL, "127.0.0.1", "localhost", 1)
	c.w.env = append(c.w.env, "PARLEY_EGRESS_ALLOW="+pinOf(c.t, c.shop.url))
	c.addTool("book", "")
}

// addTool registers a tool of the shop, with more lines of its definition.
func (c *chaosRun) addTool(name, more string) {
	c.t.Helper()
	file := filepath.Join(c.dir, name+".yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "description: Buys.\nmethod: POST\nurl: %s/%s\n%s\n", c.shop.url, name, more),
		0o600); err != nil {
		c.t.Fatal(err)
	}
	c.w.parley(c.t, "tools", "add", name, "--http", "@"+file, "--workspace", "w")
}

// ServeHTTP implements http.Handler.
func (s *chaosShop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the replica was killed
	}
	if r.URL.Path == "/hook" {
		s.mu.Lock()
		defer s.mu.Unlock()
		id := r.Header.Get("Webhook-Id")
		s.reports[id] = append(s.reports[id], string(body))
		return
	}
	s.mu.Lock()
	s.calls[r.Header.Get("Webhook-Id")]++
	n := len(s.calls)
	switch {
	case r.URL.Path != "/pay":
	case r.Header.Get("Authorization") == "Bearer "+shopSecret:
		s.paid++
	default:
		s.unpaid++
	}
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
