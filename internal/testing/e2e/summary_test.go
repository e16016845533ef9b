package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestKilledAfterASummary kills a server with kill -9 after it has stored a summary and before it
// has the reply to the request that follows. The next server sends the same bytes without another
// summary, and the request that is rebuilt from the log has the recorded hash.
func TestKilledAfterASummary(t *testing.T) {
	t.Parallel()
	var summaries atomic.Int64
	asked, lost := make(chan string, 8), make(chan struct{})
	endHeld := sync.OnceFunc(func() { close(lost) })
	provider := modeltest.OpenAI(&modeltest.Script{Answer: func(req modeltest.Request) modeltest.Reply {
		body := string(req.Body)
		switch {
		case strings.Contains(body, "You summarize"):
			return modeltest.Reply{Text: []string{fmt.Sprintf("Summary %d.", summaries.Add(1))}}
		case strings.Contains(body, "Summary 1."):
			asked <- body
			<-lost
			return modeltest.Reply{Text: []string{"The end."}}
		}
		return modeltest.Reply{Text: []string{"Read."}}
	}})
	t.Cleanup(func() {
		endHeld()
		provider.CloseClientConnections()
		provider.Close()
	})
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(prices,
		[]byte("models:\n  - name: openai/small\n    input_usd: 0\n    output_usd: 0\n    context_window: 24000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	env := []string{"OPENAI_BASE_URL=" + provider.URL + "/v1", "PARLEY_MODEL=openai/small", "PARLEY_PRICES=" + prices}
	first := w.serve(t, env)
	page := strings.Repeat("a line of a long page\n", 900)
	session, _ := w.start(t, first, "Read this.\n"+page)
	for range 5 {
		body := map[string]any{"session_id": session, "command": "And this.\n" + page, "multitask_strategy": "enqueue"}
		if err := w.stream(t.Context(), w.messages(first, body), func(frame) bool { return false }); err != nil {
			t.Fatal(err)
		}
	}
	before := wait.Receive(t, "the request after the summary", asked)
	first.kill()
	second := w.serve(t, env)
	after := wait.Receive(t, "the request of the next server", asked)
	endHeld()
	if before != after || summaries.Load() != 1 {
		t.Errorf("the next server sends another request, after %d summaries:\n%s\nnot\n%s", summaries.Load(), after, before)
	}
	wait.For(t, "every turn has ended", func() bool {
		var left int
		err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM turns WHERE state <> 'completed'`).Scan(&left)
		return err == nil && left == 0
	})
	key := w.parley(t, "keys", "create", "--workspace", "w", "--name", "auditor", "--scope", "admin")
	w.env = []string{"PARLEY_URL=" + second.url, "PARLEY_API_KEY=" + key}
	for n := 1; n <= 6; n++ {
		w.parley(t, "sessions", "context", session, "--workspace", "w", "--turn", strconv.Itoa(n)) // exit code 1: another hash
	}
}
