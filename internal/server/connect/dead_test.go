package connect_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestDeadLinksExplainThemselves opens links that were used, that are over, that are not complete, and
// answers of an authorization server to another browser. Each is a page with the reason and the remedy.
func TestDeadLinksExplainThemselves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start(t, nil)
	a.addCRM(t)
	over := link(t, a.api(t, "POST tool-servers/crm/connect", ""))
	if _, err := a.Pool.Exec(t.Context(), `UPDATE tool_links SET expires_at = clock_timestamp() WHERE used_at IS NULL`); err != nil {
		t.Fatal(err)
	}
	used := link(t, a.api(t, "POST tool-servers/crm/connect", ""))
	user := a.browser(t)
	user.follow(t, used)
	for address, want := range map[string]struct {
		status int
		words  []string
	}{
		over: {http.StatusGone, []string{"This link expired at ", "crm", "parley tools connect crm"}},
		used: {http.StatusGone, []string{"This link was used at", "crm", "parley tools connect crm"}},
		over[:len(over)-2]: {http.StatusNotFound, []string{"This link does not work any more, or it is not complete",
			"Send your message"}},
		over + "/x":                    {http.StatusNotFound, []string{"This link does not work any more, or it is not complete"}},
		public + "/connect/":           {http.StatusNotFound, []string{"This link does not work any more, or it is not complete"}},
		public + "/connect/callback":   {http.StatusConflict, []string{"This browser has not begun the connection", "Open the link again"}},
		public + "/connect/x?code=a&b": {http.StatusNotFound, []string{"This link does not work any more, or it is not complete"}},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if method == http.MethodPost && want.status == http.StatusConflict {
				continue
			}
			status, text := user.open(t, method, address, "same-origin")
			if status != want.status || !strings.HasPrefix(text, "<!doctype html>") {
				t.Errorf("%s %s: %d %s", method, address, status, text)
			}
			for _, word := range want.words {
				if !strings.Contains(text, word) {
					t.Errorf("%s %s: no %q in %s", method, address, word, text)
				}
			}
		}
	}
}
