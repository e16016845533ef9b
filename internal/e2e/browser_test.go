package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/go-rod/rod"
	"github.com/go-rod/rod/lib/launcher"
	"github.com/google/go-cmp/cmp"
)

// page reads a session with the browser's own EventSource. The names open and error
// are also the browser's own events; ours have data.
const page = `<!doctype html><script>
	window.frames_ = []; window.drops = 0;
	const source = new EventSource("/api/v1/workspaces/w/sessions/" + location.hash.slice(1) + "/events");
	for (const kind of ["open", "text", "tool_use", "tool_result", "usage", "error", "done"]) {
		source.addEventListener(kind, e => {
			if (e.data === undefined) { if (kind === "error") window.drops++; return; }
			if (kind !== "open") window.frames_.push({ID: e.lastEventId, Event: kind, Data: kind === "done" ? "" : e.data});
			if (kind === "done") { source.close(); document.title = "done"; }
		});
	}
</script>`

// TestBrowserResumesByItself lets Chromium's EventSource read a turn while the
// server is killed and started again.
func TestBrowserResumesByItself(t *testing.T) {
	t.Parallel()
	browser := browse(t)
	w := newWorld(t)
	s := w.serve(t, nil)
	addr := strings.TrimPrefix(s.url, "http://")
	front := w.front(t, s.url, func(rw http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/" {
			_, _ = rw.Write([]byte(page))
		}
		return r.URL.Path == "/"
	})
	session, _ := w.start(t, s, "@unicode\n@text 400 deltas of 12 bytes at 100/s\n@text 1 deltas of 65000 bytes\n@call grep {\"pattern\":\"x\"}\n@say done")
	tab := browser.MustPage(front + "/#" + session)
	tab.MustWait(`() => window.frames_.length > 50`)
	s.signal(syscall.SIGKILL)
	<-s.gone
	w.serveAt(t, addr, nil)
	tab.MustWait(`() => document.title === "done"`)

	var got []frame
	if err := json.Unmarshal([]byte(tab.MustEval(`() => JSON.stringify(window.frames_)`).Str()), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.table(t, session), got); diff != "" {
		t.Errorf("the browser saw something else than the table (-table +browser):\n%.2000s", diff)
	}
	if tab.MustEval(`() => window.drops`).Int() == 0 {
		t.Error("the browser never lost its connection: nothing was resumed")
	}
}

// front is an address with pages of its own, behind which is a server. It adds the key, which
// an EventSource cannot send.
func (w *world) front(t *testing.T, server string, own func(http.ResponseWriter, *http.Request) bool) string {
	target, _ := url.Parse(server)
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Set("Authorization", "Bearer "+w.key)
	}, ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }} // as a connection that breaks
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

// browse starts a browser.
func browse(t *testing.T) *rod.Browser {
	t.Helper()
	bin, found := chromium()
	if !found {
		if os.Getenv("PARLEY_TEST_REQUIRE") == "all" {
			t.Fatal("no Chromium: install the package chromium")
		}
		t.Skip("no Chromium: install the package chromium")
	}
	run := launcher.New().Bin(bin).Headless(true).NoSandbox(true).Leakless(false).UserDataDir(t.TempDir()).
		Set("disable-gpu").Set("disable-quic").Set("no-first-run").Set("disable-background-networking").Set("disable-component-update").Set("disable-sync")
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
	return browser
}

// chromium finds a browser under its usual names.
func chromium() (string, bool) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
}
