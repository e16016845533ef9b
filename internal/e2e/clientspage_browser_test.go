package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClientsPageInABrowser runs the examples of docs/clients that are for browsers: one sends a
// message, one shows a session whose turn goes on while it is shown.
func TestClientsPageInABrowser(t *testing.T) {
	t.Parallel()
	browser := browse(t)
	w := newWorld(t)
	s := w.serve(t, nil)
	show := func(t *testing.T, head, body string, library http.Handler) string {
		return w.front(t, s.url, func(rw http.ResponseWriter, r *http.Request) bool {
			switch {
			case r.URL.Path == "/":
				_, _ = rw.Write([]byte("<!doctype html><head>" + head + "</head><body>" + strings.ReplaceAll(body, "/demo/", "/w/")))
			case strings.HasPrefix(r.URL.Path, "/library/"):
				library.ServeHTTP(rw, r)
			default:
				return false
			}
			return true
		})
	}
	t.Run("fetch-event-source", func(t *testing.T) {
		const dir = "../../compat/clients"
		install(t, dir)
		esm := filepath.Join(dir, "node_modules/@microsoft/fetch-event-source/lib/esm")
		library := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			http.ServeFile(rw, r, filepath.Join(esm, strings.TrimSuffix(filepath.Base(r.URL.Path), ".js")+".js"))
		})
		names := `<script type="importmap">{"imports":{"@microsoft/fetch-event-source":"/library/index.js"}}</script>`
		tab := browser.MustPage(show(t, names, `<script type="module">`+exampleOf(t, "fetch-event-source", "js")+`</script>`, library))
		tab.MustWait(`() => document.body.innerText.includes("87")`)
	})
	t.Run("eventsource", func(t *testing.T) {
		q := w.ask(t, s)
		names := `<script>const sessionID = "` + q.session + `", show = text => document.body.append(text), fail = show;</script>`
		tab := browser.MustPage(show(t, names, exampleOf(t, "eventsource", "html"), nil))
		tab.MustWait(`() => document.body.innerText.includes("I write it down.")`)
		if status, d := w.decide(t, s, q, "allow"); status != http.StatusOK {
			t.Fatalf("%d %+v", status, d)
		}
		tab.MustWait(`() => document.body.innerText.includes("Done.")`)
	})
}

// exampleOf is the first example of a page in a language.
func exampleOf(t *testing.T, about, language string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/clients/" + about + ".md")
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
