package rest_test

import (
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/turn"
)

// TestBurstOfMessages sends many more messages at once than the pool has connections. The database
// is healthy, so every one of them is stored and none gets a 503.
func TestBurstOfMessages(t *testing.T) {
	t.Parallel()
	const messages = 600
	s := startTurns(t, func(c *server.Config) { c.Timeout = 10 * time.Second }, func(c *turn.Config) { c.Workers = 0 })
	client := &http.Client{Transport: s.Transport}
	var mu sync.Mutex
	statuses := make(map[int]int)
	reasons := make(map[string]int)
	var all sync.WaitGroup
	for range messages {
		r := s.request(t, call{method: "POST", path: "messages", body: body(t, "@text 1 delta")})
		all.Go(func() {
			res, err := client.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			reason := ""
			if res.StatusCode != http.StatusOK {
				text, _ := io.ReadAll(res.Body)
				reason = string(text)
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[res.StatusCode]++
			if reason != "" && len(reasons) < 3 {
				reasons[reason]++
			}
		})
	}
	wait.Until(t, "all goroutines", all.Wait)
	var stored int
	if err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM turns`).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if statuses[http.StatusOK] != messages || stored != messages {
		t.Errorf("of %d messages at once %d are stored; answers by status %v, such as %v", messages, stored, statuses, reasons)
	}
}
