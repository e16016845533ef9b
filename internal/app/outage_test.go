package app_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

// journal counts the lines of a log by their message.
type journal struct {
	mu    sync.Mutex
	lines map[string]int
}

func (j *journal) Write(line []byte) (int, error) {
	var l struct{ Msg, Level string }
	if err := json.Unmarshal(bytes.TrimSpace(line), &l); err != nil {
		return 0, err
	}
	if l.Level == "DEBUG" && !strings.HasSuffix(l.Msg, ": works again") {
		return len(line), nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines[l.Msg]++
	return len(line), nil
}

// outages returns how many outages of each operation were logged, and how many of them are over.
func (j *journal) outages() (begun map[string]int, open int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	begun = make(map[string]int)
	for msg, n := range j.lines {
		if operation, ok := strings.CutSuffix(msg, ": failed"); ok {
			begun[operation] = n
			open += n - j.lines[operation+": works again"]
		}
	}
	return begun, open
}

func (j *journal) total() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, lines := range j.lines {
		n += lines
	}
	return n
}

// TestOutageFillsNoLog refuses a replica's connections until it has tried a hundred times and four
// operations have failed. Each operation logs the begin of its outage once, and its end once.
func TestOutageFillsNoLog(t *testing.T) {
	t.Parallel()
	b := newBridge(t, dbtest.DSN(t))
	j := &journal{lines: make(map[string]int)}
	at, _, err := serve(t, app.Options{Log: slog.New(slog.NewJSONHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))},
		"DATABASE_URL="+b.through, "PARLEY_LISTEN=127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return ready(t, at) })
	before := j.total()
	b.proxy.Refuse(true)
	b.proxy.Cut()
	// An operation whose answer arrived just before the cut can report success after another failed.
	until(t, func() bool { ready(t, at); return b.proxy.Refused() >= 20 })
	early, _ := j.outages()
	until(t, func() bool {
		ready(t, at)
		begun, _ := j.outages()
		return b.proxy.Refused() >= 100 && len(begun) >= 4
	})
	begun, _ := j.outages()
	lines := j.total() - before
	t.Logf("%d lines, outages of %v", lines, begun)
	for operation, n := range begun {
		if n > max(1, early[operation]) {
			t.Errorf("%q logged %d outages, %d of them at once", operation, n, early[operation])
		}
	}
	if lines > len(begun)+5 {
		t.Errorf("%d lines for %d operations: %v", lines, len(begun), j.lines)
	}
	b.proxy.Refuse(false)
	until(t, func() bool {
		ready(t, at)
		_, open := j.outages()
		return open == 0
	})
}

// ready asks a replica whether it is ready, as a load balancer does.
func ready(t *testing.T, at string) bool {
	t.Helper()
	res, err := http.Get(at + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// until polls the condition until it is true.
func until(t *testing.T, yes func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !yes(); {
		if time.Now().After(deadline) {
			t.Fatal("the condition was not true within two minutes")
		}
	}
}
