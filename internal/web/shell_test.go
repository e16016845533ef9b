package web

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/browser"
)

// TestErrorsArePages reads errors as a browser and as a client of the API.
func TestErrorsArePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := browser.New(t)
	p.Go(w.URL + "/missing")
	p.See("h1", "Page not found")
	p.Review("error-404")
	for path, want := range map[string]string{"/missing": "application/json", "/api/v1/missing": "application/json"} {
		res, err := http.Get(w.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := res.Header.Get("Content-Type"); !strings.HasPrefix(got, want) || res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, res.StatusCode, got)
		}
	}
}

// TestStyleSheetIsSmall holds the budgets of the files.
func TestStyleSheetIsSmall(t *testing.T) {
	t.Parallel()
	a, err := loadAssets()
	if err != nil {
		t.Fatal(err)
	}
	scripts := 0
	for name, data := range a.files {
		if strings.HasSuffix(name, ".js") && !strings.HasPrefix(name, "vendor/") {
			scripts += len(data)
			for line := range strings.Lines(string(data)) {
				if strings.Count(line, "`")%2 != 0 {
					t.Errorf("%s has a text that goes over several lines: %s", name, line)
				}
			}
		}
	}
	if n, docs := len(a.files["app.css"]), len(a.files["docs.css"]); n+docs > 40<<10 || n == 0 || docs == 0 {
		t.Errorf("app.css has %d bytes, docs.css %d", n, docs)
	} else {
		t.Logf("app.css has %d bytes, docs.css %d, our scripts %d", n, docs, scripts)
	}
	if scripts > 80<<10 {
		t.Errorf("our scripts have %d bytes", scripts)
	}
}

// TestSessionsAreListed sends messages and reads their sessions in the list and in each tab.
func TestSessionsAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.signIn(t, account.NewUser{Email: "vera@halden.example", Name: "Vera Holm"}, apikey.Viewer)
	p.Go(w.URL + "/w/demo/sessions")
	p.Review("sessions-none")
	for _, text := range []string{"What can you do?", "@say <script>alert(1)</script> & \u202e"} {
		w.say(t, text, "")
	}
	p.Go(w.URL + "/w/demo/sessions")
	p.See("td", "What can you do?")
	p.Review("sessions")
	p.Press("a.t", "<script>")
	p.See("pre", "<script>alert(1)</script>")
	p.Review("session")
	p.Press(".tabs a", "Events")
	p.See("td", "done")
	if strings.ContainsRune(p.MustElement("body").MustText(), '\u202e') {
		t.Error("a character that turns the text around is not escaped")
	}
	p.Review("session-events")
	p.Press(".tabs a", "Timeline")
	p.See("li", "model call 1")
	p.Review("session-timeline")
	p.Press(".tabs a", "Export")
	p.See("a.btn", ".jsonl")
	p.Review("session-export")
	exports := w.URL + p.Path() + "/export?format="
	p.Press(".tabs a", "SQL")
	p.Review("session-sql")
	for address, want := range map[string]string{exports + "md": "> @say <script>", exports + "json": `"event":"done"`,
		exports + "jsonl": `{"message":`,
		w.URL + "/w/demo/sessions?format=csv&q=what": ",What can you do?,"} {
		if got := download(t, p, address); !strings.Contains(got, want) {
			t.Errorf("%s has no %q:\n%.2000s", address, want, got)
		}
	}
	p.Go(w.URL + "/w/demo/usage")
	p.See("dd", "2")
	p.See("dd", "100.0 % completed")
	p.See("dd", "of 2 recent turns")
	p.See("td", "default v1")
	p.Review("usage")
	p.Press(".seg a", "Today")
	p.See("h2", "per hour")
	p.Review("usage-today")
	other, _ := w.Another(t)
	if used, err := w.Sessions.Usage(t.Context(), other.ID, time.Now().Add(-time.Hour), session.ByDay, 10); err != nil ||
		len(used.Times)+len(used.Keys) != 0 {
		t.Errorf("another workspace used %+v, %v", used, err)
	}
	if got := download(t, p, w.URL+"/w/demo/usage?period=7&by=key&format=csv"); !strings.Contains(got, ",2,2,") {
		t.Errorf("the table by key is\n%s", got)
	}
	p.Go(w.URL + "/w/demo/sessions?q=nothing-like-this&status=failed")
	p.See("h2", "No session matches")
	p.Go(w.URL + "/w/demo/sessions/00000000-0000-0000-0000-000000000000")
	p.See("h1", "Page not found")
}

// download returns a file that a page offers.
func download(t *testing.T, p *browser.Page, address string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.MustCookies() {
		r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Disposition"), "attachment; filename=") {
		t.Fatalf("%s: %s, %q, %v", address, res.Status, res.Header.Get("Content-Disposition"), err)
	}
	return string(data)
}
