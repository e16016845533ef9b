package e2e_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-server/parley/internal/testing/wait"
)

// posting sends a message with fetch-event-source, which sends it again after every disconnect and
// whenever the tab becomes visible again.
const posting = `<!doctype html><script type="module">
	import { fetchEventSource } from "/library/index.js";
	window.text = ""; window.empty = 0; window.opened = 0; window.hidden_ = false;
	Object.defineProperty(document, "hidden", { get: () => window.hidden_ });
	window.show = on => { window.hidden_ = !on; document.dispatchEvent(new Event("visibilitychange")); };
	const stop = new AbortController();
	fetchEventSource("/api/v1/workspaces/w/messages", {
		method: "POST", headers: { "Content-Type": "application/json" }, signal: stop.signal,
		body: JSON.stringify({ command: "@text 400 deltas of 12 bytes at 100/s" }),
		onopen: async res => { if (!res.ok) throw new Error(await res.text()); window.opened++; },
		onmessage: e => {
			if (e.event === "" || e.data === "") window.empty++;
			else if (e.event === "text") window.text += JSON.parse(e.data).text;
			else if (e.event === "done") { stop.abort(); document.title = "done"; }
		},
		onclose: () => { throw new Error("the stream ended without done"); }, // else it would not reconnect
		onerror: () => 100,
	});
</script>`

// TestFetchEventSourceStartsOneTurn checks that a message that is sent repeatedly is one turn, and
// that every piece of its answer arrives once. Keep-alives are not messages.
func TestFetchEventSourceStartsOneTurn(t *testing.T) {
	t.Parallel()
	const dir = "../../../compat/clients"
	install(t, dir)
	browser := browse(t)
	w := newWorld(t)
	s := w.serve(t, []string{"PARLEY_SSE_KEEPALIVE=20ms", "PARLEY_DRAIN=0s"})
	library := filepath.Join(dir, "node_modules/@microsoft/fetch-event-source/lib/esm")
	front := w.front(t, s.url, func(rw http.ResponseWriter, r *http.Request) bool {
		name, ours := strings.CutPrefix(r.URL.Path, "/library/")
		switch {
		case r.URL.Path == "/":
			_, _ = rw.Write([]byte(posting))
		case ours:
			http.ServeFile(rw, r, filepath.Join(library, strings.TrimSuffix(filepath.Base(name), ".js")+".js"))
		}
		return ours || r.URL.Path == "/"
	})
	tab := browser.MustPage(front)
	tab.MustWait(`() => window.text?.length > 600`)
	tab.MustEval(`() => window.show(false)`)
	tab.MustEval(`() => window.show(true)`)
	tab.MustWait(`() => window.opened === 2 && window.text.length > 1200`)
	addr := strings.TrimPrefix(s.url, "http://")
	s.signal(syscall.SIGTERM) // the stream ends cleanly, without done
	wait.Receive(t, "the end of the connection", s.gone)
	s = w.serveAt(t, addr, nil)
	tab.MustWait(`() => window.opened === 3 && window.text.length > 2400`)
	s.kill()
	w.serveAt(t, addr, nil)
	tab.MustWait(`() => document.title === "done"`)
	if n := tab.MustEval(`() => window.text.length`).Int(); n != 400*12 {
		t.Errorf("%d characters, want %d", n, 400*12)
	}
	if n := tab.MustEval(`() => window.empty`).Int(); n != 0 {
		t.Errorf("%d empty messages", n)
	}
	var turns int
	if err := w.pool.QueryRow(t.Context(), "SELECT count(*) FROM turns").Scan(&turns); err != nil || turns != 1 {
		t.Errorf("%d turns, %v", turns, err)
	}
	if n := tab.MustEval(`() => window.opened`).Int(); n < 4 {
		t.Errorf("the message was sent %d times: no connection was dropped", n)
	}
}
