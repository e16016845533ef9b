package e2e_test

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestClientsPageInABrowser runs the examples of docs/guides/clients for browsers, with the server
// of docs/guides/clients/eventsource.md between them and Parley.
func TestClientsPageInABrowser(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs processes")
	browser := browse(t)
	w := newWorld(t)
	s := w.serve(t, nil)
	between, log := w.between(t, s.url)
	t.Run("fetch-event-source", func(t *testing.T) {
		const dir = "../../../compat/clients"
		install(t, dir)
		esm := filepath.Join(dir, "node_modules/@microsoft/fetch-event-source/lib/esm")
		names := `<script type="importmap">{"imports":{"@microsoft/fetch-event-source":"/library/index.js"}}</script>`
		page := "<!doctype html><head>" + names + `</head><body><script type="module">` + exampleOf(t, "fetch-event-source", "js") + "</script>"
		var away away
		busy := true
		front := w.front(t, between, func(rw http.ResponseWriter, r *http.Request) bool {
			switch {
			case r.URL.Path == "/":
				_, _ = rw.Write([]byte(page))
			case strings.HasPrefix(r.URL.Path, "/library/"):
				http.ServeFile(rw, r, filepath.Join(esm, strings.TrimSuffix(filepath.Base(r.URL.Path), ".js")+".js"))
			case r.URL.Path != "/chat":
				return false
			case busy: // the first time
				busy = false
				rw.Header().Set("Retry-After", "1")
				http.Error(rw, "too many", http.StatusTooManyRequests)
			default:
				return !away.answers(rw)
			}
			return true
		})
		browser.MustPage(front).MustWait(`() => document.body.innerText.includes("87")`)
		if n := away.asked.Load(); n != 1 {
			t.Errorf("it sends %d requests to an unavailable server", n)
		}
	})
	t.Run("eventsource", func(t *testing.T) {
		tab := browser.MustPage(between).MustWaitLoad()
		send := func(command string) {
			t.Helper()
			tab.MustEval(`command => { document.querySelector("input").value = command; document.querySelector("button").click() }`, command)
		}
		send("What is 12*7+3?")
		tab.MustWait(`() => document.querySelector("pre").innerText.includes("87")`)
		send("Ask me for an approval")
		tab.MustWait(`() => document.querySelector("pre").innerText.includes("parley approvals show")`)
		id := tab.MustEval(`() => document.querySelector("pre").innerText.match(/approvals show (\S+)/)[1]`).Str()
		if status, d := w.decide(t, s, question{DecideURL: "/api/workspaces/w/approvals/" + id + "/decide"}, "allow"); status != http.StatusOK {
			t.Fatalf("%d %+v", status, d)
		}
		tab.MustWait(`() => document.querySelector("pre").innerText.includes("The call went through.")`)
	})
	t.Run("eventsource without an answer", func(t *testing.T) {
		alone, _ := w.between(t, "http://127.0.0.1:1")
		var keys sync.Map
		var trouble atomic.Pointer[http.HandlerFunc]
		front := w.front(t, between, func(rw http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/chat" {
				return false
			}
			keys.Store(r.Header.Get("Idempotency-Key"), true)
			if h := trouble.Load(); h != nil {
				(*h)(rw, r)
				return true
			}
			return false
		})
		tab := browser.MustPage(front).MustWaitLoad()
		send := func(h http.HandlerFunc, says string) {
			trouble.Store(&h)
			if h == nil {
				trouble.Store(nil)
			}
			tab.MustEval(`() => document.querySelector("button").click()`)
			tab.MustWait(`says => document.querySelector("pre").innerText.includes(says)`, says)
		}
		send(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "No answer: Failed to fetch")
		send(func(rw http.ResponseWriter, _ *http.Request) {
			_, _ = rw.Write([]byte(": ping\n"))
		}, "No answer: the stream broke off at its beginning")
		send(func(rw http.ResponseWriter, r *http.Request) {
			res, err := http.Post(alone+"/chat", "application/json", r.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			defer res.Body.Close()
			rw.WriteHeader(res.StatusCode)
			_, _ = io.Copy(rw, res.Body)
		}, "No answer: The agent cannot be reached. Try again.")
		send(nil, "87")
		n := 0
		keys.Range(func(any, any) bool { n++; return true })
		if n != 1 {
			t.Errorf("the message was %d messages", n)
		}
	})
	t.Run("an abandoned eventsource", func(t *testing.T) {
		tab := browser.MustPage(between).MustWaitLoad()
		tab.MustEval(
			`() => { document.querySelector("input").value = "@text 400 deltas of 12 bytes at 100/s"; document.querySelector("button").click() }`)
		tab.MustWait(`() => document.querySelector("pre").innerText.length > 600`)
		s.kill()
		wait.For(t, "the browser is told 502", func() bool { return strings.Contains(string(log.bytes()), "fetch failed") })
		w.serveAt(t, strings.TrimPrefix(s.url, "http://"), nil)
		tab.MustWait(`() => document.querySelector("pre").innerText.length >= 400*12`)
	})
}

// TestTheServerBetweenKeepsUsersApart checks the server of docs/guides/clients/eventsource.md: a
// user cannot resume another user's conversation, neither with its id nor with its key.
func TestTheServerBetweenKeepsUsersApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	between, _ := w.between(t, w.serve(t, nil).url)
	do := func(user, method, path string, header ...string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, between+path,
			strings.NewReader(`{"command":"What is 12*7+3?","caller_id":"alice"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-User", url.PathEscape(user))
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, body := w.do(t, req)
		return res.StatusCode, string(body)
	}
	_, hers := do("alice", http.MethodPost, "/chat", "Idempotency-Key", "1")
	open := regexp.MustCompile(`(?m)^id: (.*)\ndata: {"session_id":"(.*?)"`).FindStringSubmatch(hers)
	if open == nil || !strings.Contains(hers, "87") {
		t.Fatalf("alice receives\n%s", hers)
	}
	if status, again := do("alice", http.MethodPost, "/chat", "Last-Event-ID", open[1]); status != http.StatusOK ||
		!strings.Contains(again, open[2]) {
		t.Errorf("alice resumes it: %d\n%s", status, again)
	}
	if status, his := do("bob", http.MethodGet, "/chat/events?replay=all&last_event_id="+open[1]); status != http.StatusNotFound {
		t.Errorf("bob attaches without a message: %d\n%s", status, his)
	}
	if status, his := do("bob", http.MethodPost, "/chat", "Last-Event-ID", open[1]); status != http.StatusBadRequest ||
		!strings.Contains(his, "INVALID_CURSOR") {
		t.Errorf("bob with the id of alice: %d\n%s", status, his)
	}
	if status, his := do("bob", http.MethodPost, "/chat", "Idempotency-Key", "1"); status != http.StatusOK || strings.Contains(his, open[2]) {
		t.Errorf("bob with the key of alice: %d\n%s", status, his)
	}
	for _, name := range []string{"Zoë", "李"} {
		if status, theirs := do(name, http.MethodPost, "/chat", "Idempotency-Key", "1"); status != http.StatusOK ||
			!strings.Contains(theirs, "87") || strings.Contains(theirs, open[2]) {
			t.Errorf("%s: %d\n%s", name, status, theirs)
		}
	}
	if status, his := do("bob", http.MethodGet, "/chat/events?replay=all"); status != http.StatusOK || strings.Contains(his, open[2]) {
		t.Errorf("bob follows: %d\n%s", status, his)
	}
}

// between runs the server of docs/guides/clients/eventsource.md between its page and Parley.
func (w *world) between(t *testing.T, server string) (string, *record) {
	t.Helper()
	return w.betweenPage(t, server, exampleOf(t, "eventsource", "html"))
}

// betweenPage runs that server with another page.
func (w *world) betweenPage(t *testing.T, server, page string) (string, *record) {
	t.Helper()
	code := strings.NewReplacer("/demo`", "/w`", `"alice"`, `decodeURIComponent(req.headers["x-user"] ?? "alice")`).Replace(exampleOf(t,
		"eventsource", "js"))
	return w.runBackend(t, server, freePort(t), map[string]string{"page.html": page, "server.mjs": code})
}

// exampleOf returns the first example of a page in a language.
func exampleOf(t *testing.T, about, language string) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/guides/clients/" + about + ".md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range example.FindAllStringSubmatch(string(text), -1) {
		if e[1] == language {
			return e[2]
		}
	}
	t.Fatalf("%s has no example in %s", about, language)
	return ""
}
