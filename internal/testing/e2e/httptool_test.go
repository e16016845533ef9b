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
	"testing"

	"github.com/parley-server/parley/internal/testing/wait"
)

// depot is an HTTP API that holds its responses back, and counts the requests of each call.
type depot struct {
	calls   chan [2]string // path and tool_use_id
	leave   chan struct{}
	release func() // closes leave

	mu   sync.Mutex
	seen map[string]int // requests, by path and tool_use_id
}

// ServeHTTP implements http.Handler. /accept answers at once that its result comes later.
func (d *depot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	id := r.Header.Get("Webhook-Id")
	d.mu.Lock()
	d.seen[r.URL.Path+" "+id]++
	d.mu.Unlock()
	d.calls <- [2]string{r.URL.Path, id}
	if r.URL.Path != "/accept" {
		select {
		case <-d.leave:
		case <-r.Context().Done():
		}
	}
	if r.URL.Path == "/accept" || r.URL.Path == "/later" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	fmt.Fprint(w, "result of "+r.URL.Path)
}

// addTools registers a tool for each path.
func (d *depot) addTools(t *testing.T, w *world) {
	t.Helper()
	h := httptest.NewServer(d)
	t.Cleanup(func() { d.release(); h.Close() })
	address := strings.Replace(h.URL, "127.0.0.1", "localhost", 1)
	w.env = []string{"PARLEY_EGRESS_ALLOW=" + pinOf(t, address)}
	for name, more := range map[string]string{"find": "label: read_only", "book": "later: false", "put": "idempotent: true",
		"later": "later: true", "accept": "later: true"} {
		file := filepath.Join(t.TempDir(), name+".yaml")
		text := fmt.Sprintf("description: %s\nmethod: POST\nurl: %s/%s\n%s\n", name, address, name, more)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		w.parley(t, "tools", "add", name, "--http", "@"+file, "--workspace", "w")
	}
}

// TestKilledInACallOfAnHTTPTool kills a server with kill -9 while turns wait for the response of an
// HTTP API, and for a result that comes later. Each call begins once and has one result. A request
// is repeated only if that is safe, with the same id.
func TestKilledInACallOfAnHTTPTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := &depot{calls: make(chan [2]string, 20), leave: make(chan struct{}), seen: make(map[string]int)}
	d.release = sync.OnceFunc(func() { close(d.leave) })
	d.addTools(t, w)
	poster := w.parley(t, "keys", "create", "--workspace", "w", "--name", "depot", "--scope", "tools:write")
	first, second := w.serve(t, w.env), w.serve(t, w.env, "--no-workers")
	sessions, ids := make(map[string]string), make(map[string]string)
	for _, name := range []string{"find", "book", "put", "later", "accept"} {
		sessions[name] = w.startAllowed(t, first, "@call "+name+" {}\n@say Done.")
	}
	for range sessions {
		c := wait.Receive(t, "a call", d.calls)
		ids[strings.TrimPrefix(c[0], "/")] = c[1]
	}
	wait.For(t, "the turn waits for its later result", func() bool {
		var parked int
		err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM approvals WHERE kind = 'tool_result' AND status = 'pending'`).Scan(&parked)
		return err == nil && parked == 1
	})
	first.kill()
	for _, name := range []string{"later", "accept"} {
		for range 2 {
			req := second.post("/api/v1/workspaces/w/tool-calls/"+ids[name]+"/result", map[string]any{"output": "result of /" + name})
			req.Header.Set("Authorization", "Bearer "+poster)
			if res, body := w.do(t, req); res.StatusCode != http.StatusOK {
				t.Errorf("%s: %d %s", name, res.StatusCode, body)
			}
		}
	}
	d.release()
	third := w.serve(t, w.env)
	for name, session := range sessions {
		frames, err := w.follow(t.Context(), session, "", nil, third)
		if err != nil {
			t.Fatal(err)
		}
		counts, results := make(map[string]int), ""
		for _, f := range frames {
			if counts[f.Event]++; f.Event == "tool_result" {
				results += f.Data
			}
		}
		want := `"ok":true,"output":"result of /` + name + `"`
		if name == "book" {
			want = `"ok":false,"output":"interrupted, outcome unknown"`
		}
		if counts["tool_use"] != 1 || counts["tool_result"] != 1 || !strings.Contains(results, want) || text(frames) != "Done." {
			t.Errorf("%s: %v %s, text %q", name, counts, results, text(frames))
		}
		repeated := map[string]int{"find": 2, "put": 2}[name]
		d.mu.Lock()
		if n := d.seen["/"+name+" "+ids[name]]; n != max(repeated, 1) {
			t.Errorf("%s reached its receiver %d times", name, n)
		}
		d.mu.Unlock()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.seen) != len(sessions) {
		t.Errorf("requests: %v", d.seen)
	}
}
