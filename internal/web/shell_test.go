package web

import (
	"net/http"
	"strings"
	"testing"

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
