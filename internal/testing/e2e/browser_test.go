package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-rod/rod"
	"github.com/go-rod/rod/lib/launcher"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// page reads a session with the browser's own EventSource. The names open and error are also the
// browser's own events; the server's have data. It closes nothing at the end, as careless pages do,
// and watch opens a source that ends at once, to measure how long this one is silent.
const page = `<!doctype html><script>
	window.frames_ = []; window.opened = {ours: 0, own: 0}; window.failed = {ours: 0, own: 0};
	const [session, cursor] = location.hash.slice(1).split(",");
	const source = new EventSource("/api/v1/workspaces/w/sessions/" + session + "/events?replay=all&last_event_id=" + cursor);
	source.onopen = e => window.opened[e.data === undefined ? "own" : "ours"]++;
	source.onerror = e => window.failed[e.data === undefined ? "own" : "ours"]++;
	for (const kind of ["text", "tool_use", "tool_result", "usage", "structured", "error", "done"]) {
		source.addEventListener(kind, e => {
			if (e.data === undefined) return;
			window.frames_.push({ID: e.lastEventId, Event: kind, Data: kind === "done" ? "" : e.data});
			if (kind === "done") document.title = "done";
		});
	}
	window.watch = () => new EventSource("/short");
</script>`

// TestBrowserResumesByItself lets Chromium's EventSource read a turn while the server is killed and
// restarted. The cursor in its address is old by then: the header takes precedence. After done it
// sends no more requests.
func TestBrowserResumesByItself(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs processes")
	browser := browse(t)
	w := newWorld(t)
	s := w.serve(t, nil)
	var asked, short atomic.Int32
	front := w.front(t, s.url, func(rw http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case "/":
			_, _ = rw.Write([]byte(page))
		case "/short": // a stream that ends without a retry field
			short.Add(1)
			rw.Header().Set("Content-Type", "text/event-stream")
			_, _ = rw.Write([]byte("retry: 2000\n\n"))
		default:
			asked.Add(1)
			return false
		}
		return true
	})
	session, open := w.start(t, s, "@unicode\n@text 400 deltas of 12 bytes at 100/s\n@text 1 deltas of 65000 bytes\n@call grep "+
		"{\"pattern\":\"x\"}\n@say done\n@error model_error")
	tab := browser.MustPage(front + "/#" + session + "," + open.ID)
	tab.MustWait(`() => window.frames_.length > 50`)
	s.kill()
	w.serveAt(t, strings.TrimPrefix(s.url, "http://"), nil)
	tab.MustWait(`() => document.title === "done"`)
	w.sameFrames(t, session, tab)

	drops := tab.MustEval(`() => window.failed.own`).Int()
	if ours, own := tab.MustEval(`() => window.opened.ours`).Int(), tab.MustEval(`() => window.opened.own`).Int(); drops == 0 ||
		ours != own || ours < 2 {
		t.Errorf("%d drops, opened %d times, and %d open frames", drops, own, ours)
	}
	if n := tab.MustEval(`() => window.failed.ours`).Int(); n != 1 {
		t.Errorf("%d error frames, want 1", n)
	}
	tab.MustWait(`() => source.readyState === EventSource.CONNECTING`) // the stream has ended
	before := asked.Load()
	tab.MustEval(`() => window.watch()`)
	wait.For(t, "the other source has come back twice", func() bool { return short.Load() > 2 })
	if n := asked.Load() - before; n != 0 {
		t.Errorf("after done the browser asked %d times more", n)
	}
}

// TestBrowserReadsALargeFrame lets a browser read a frame of a megabyte, of characters that end a
// line in other languages.
func TestBrowserReadsALargeFrame(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs processes")
	browser := browse(t)
	answer := `{"s":"` + strings.Repeat("\u2028", 170_000) + `"}`
	provider := modeltest.OpenAI(&modeltest.Script{
		Replies: []modeltest.Reply{{Calls: []modeltest.Call{{ID: "f", Tool: "final_answer", Input: answer}}}}})
	t.Cleanup(func() {
		provider.CloseClientConnections()
		provider.Close()
	})
	w := newWorld(t)
	s := w.serve(t, []string{"OPENAI_BASE_URL=" + provider.URL + "/v1"})
	front := w.front(t, s.url, func(rw http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/" {
			_, _ = rw.Write([]byte(page))
		}
		return r.URL.Path == "/"
	})
	var open struct {
		SessionID string `json:"session_id"`
	}
	ask := map[string]any{"command": "go", "response_schema": map[string]any{"type": "object"}}
	if err := w.stream(t.Context(), w.messages(s, ask), func(f frame) bool {
		return json.Unmarshal([]byte(f.Data), &open) != nil
	}); err != nil {
		t.Fatal(err)
	}
	tab := browser.MustPage(front + "/#" + open.SessionID + ",0")
	tab.MustWait(`() => document.title === "done"`)
	w.sameFrames(t, open.SessionID, tab)
	if n := tab.MustEval(
		`() => new TextEncoder().encode(window.frames_.find(f => f.Event === "structured")?.Data).length`).Int(); n < 1_000_000 {
		t.Errorf("the largest frame has %d bytes", n)
	}
}

// sameFrames compares the frames of a page with the table.
func (w *world) sameFrames(t *testing.T, session string, tab *rod.Page) {
	t.Helper()
	var got []frame
	if err := json.Unmarshal([]byte(tab.MustEval(`() => JSON.stringify(window.frames_)`).Str()), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.table(t, session), got); diff != "" {
		t.Errorf("the browser's frames differ from the table (-table +browser):\n%.2000s", diff)
	}
}

// front is a proxy that serves pages of its own and forwards the rest to a server. It adds the key,
// which an EventSource cannot send.
func (w *world) front(t *testing.T, server string, own func(http.ResponseWriter, *http.Request) bool) string {
	target, _ := url.Parse(server)
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Set("Authorization", "Bearer "+w.key)
	}, ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }} // like a broken connection
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !own(rw, r) {
			proxy.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	return front.URL
}

// browse starts a browser. Every operation on a page fails after browseLimit.
func browse(t *testing.T) *rod.Browser {
	t.Helper()
	bin, found := chromium()
	if !found {
		need.Missing(t, "no Chromium: install the package chromium")
	}
	run := launcher.New().Bin(bin).Headless(true).NoSandbox(true).Leakless(false).UserDataDir(t.TempDir()).
		Set("disable-gpu").Set("disable-quic").Set("no-first-run").Set("disable-background-networking").Set("disable-component-update").Set(
		"disable-sync")
	control, err := run.Launch()
	if err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	t.Cleanup(run.Kill)
	browser := rod.New().ControlURL(control)
	if err := browser.Connect(); err != nil {
		t.Fatalf("connect to Chromium: %v", err)
	}
	t.Cleanup(func() { _ = browser.Close() })
	return browser.Timeout(browseLimit)
}

const browseLimit = 5 * time.Minute

// chromium finds a browser under its usual names.
func chromium() (string, bool) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
}
