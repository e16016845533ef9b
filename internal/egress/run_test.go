package egress_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/egress"
)

// TestTheValueReachesItsHost checks that a server receives the value in place of the placeholder,
// and that a program never sees more than the placeholder.
func TestTheValueReachesItsHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	for _, d := range doors(t, w.run(t, egress.RunConfig{})) {
		a := d.get(t, "https://api.test/v1/me?a=b%2F")
		if got := w.last(t); got.header.Get("Authorization") != "Bearer "+value || got.uri != "/v1/me?a=b%2F" || got.host != "api.test" {
			t.Errorf("%s: api.test was sent %+v", d.name, got)
		}
		if a.status != 200 || !strings.Contains(a.body, "Authorization: Bearer "+mark) {
			t.Errorf("%s: %d %q %v", d.name, a.status, a.body, a.err)
		}
		hidden(t, a.text())
		a = d.send(t, http.MethodGet, "https://api.test/", "", func(r *http.Request) { r.SetBasicAuth("user", holder) })
		want := &http.Request{Header: http.Header{}}
		want.SetBasicAuth("user", value)
		if got := w.last(t).header.Get("Authorization"); got != want.Header.Get("Authorization") {
			t.Errorf("%s: api.test was sent %q", d.name, got)
		}
		hidden(t, a.text())
	}
	for _, n := range w.noted() {
		if n.Decision != egress.Sent || n.final != egress.Sent || n.status != 200 || len(n.Credentials) != 1 ||
			n.Credentials[0] != (egress.Use{Name: "API_KEY", Version: 3}) || n.Method != "GET" || n.Host != "api.test" || n.Scheme != "https" {
			t.Errorf("recorded: %+v", n)
		}
	}
}
