package egress_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/redact"
	"github.com/parley-server/parley/internal/store/vault"
)

const severalLines = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\r\nq8f7+/Zk1=\n-----END PRIVATE KEY-----\n"

// TestValuesOfSeveralLinesGoIntoBodies sends a value of several lines in every kind of body, and
// tries all other places.
func TestValuesOfSeveralLinesGoIntoBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	c := key(func(c *egress.Credential) {
		c.Value, c.InQuery, c.InBody = vault.NewValue([]byte(severalLines)), true, true
	})
	r := w.run(t, egress.RunConfig{Credentials: []egress.Credential{c}})
	inJSON, err := json.Marshal(severalLines)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range doors(t, r) {
		for kind, want := range map[string]string{
			"application/json": strings.Trim(string(inJSON), `"`), "application/x-www-form-urlencoded": url.QueryEscape(severalLines),
			"text/plain": severalLines,
		} {
			a := d.send(t, http.MethodPost, "https://api.test/", "a="+holder+"&b", func(r *http.Request) { r.Header.Set("Content-Type", kind) })
			if got := w.last(t).body; a.status != 200 || got != "a="+want+"&b" {
				t.Errorf("%s, %s: %q: %s", d.name, kind, got, a.text())
			}
			if text := a.text(); strings.Contains(text, "q8f7") || !strings.Contains(text, "[secret:API_KEY]") {
				t.Errorf("%s, %s: %s", d.name, kind, text)
			}
		}
		sent := len(w.arrivals())
		for name, edit := range map[string]func(*http.Request){
			"a header": func(r *http.Request) { r.Header.Set("X-Key", holder) },
			"basic": func(r *http.Request) {
				r.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("u:"+holder)))
			},
			"a query": func(r *http.Request) { r.URL.RawQuery = "k=" + holder },
		} {
			a := d.send(t, http.MethodPost, "https://api.test/", "body", edit)
			refusedWith(t, d, a, http.StatusBadRequest, "The value of API_KEY has several lines: it can only be sent in the body of a request.")
			if len(w.arrivals()) != sent {
				t.Errorf("%s, %s: it was sent", d.name, name)
			}
		}
	}
}

// TestGuessableValuesAreHiddenWhereTheyWere echoes a PIN in responses to requests that carried it,
// and to requests that did not.
func TestGuessableValuesAreHiddenWhereTheyWere(t *testing.T) {
	t.Parallel()
	const pin = "48151623"
	w := newWorld(t, egress.Config{})
	c := key(func(c *egress.Credential) { c.Value, c.InBody = vault.NewValue([]byte(pin)), true })
	r := w.run(t, egress.RunConfig{Credentials: []egress.Credential{c},
		Redact:        redact.New(redact.Secret{Name: "OTHER", Value: []byte("another-secret-value")}),
		RedactRecords: redact.New(redact.Secret{Name: "API_KEY", Value: []byte(pin)})})
	for _, d := range doors(t, r) {
		for name, edit := range map[string]func(*http.Request){
			"a header": func(r *http.Request) { r.Header.Set("X-Key", holder) },
			"basic":    func(r *http.Request) { r.SetBasicAuth("user", holder) },
		} {
			a := d.send(t, http.MethodPost, "https://api.test/48151622", "and "+pin, edit)
			if text := a.text(); a.status != 200 || strings.Contains(text, pin) ||
				strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("user:"+pin))) {
				t.Errorf("%s, %s: %s", d.name, name, text)
			}
		}
		if a := d.send(t, http.MethodPost, "https://api.test/", "pin "+holder, nil); strings.Contains(a.text(), pin) ||
			!strings.Contains(a.body, "[secret:API_KEY]") {
			t.Errorf("%s, body: %s", d.name, a.text())
		}
		a := d.send(t, http.MethodPost, "https://api.test/"+pin, "candidates 48151622 48151623", nil)
		if a.status != 200 || !strings.Contains(a.body, "48151622 48151623") {
			t.Errorf("%s, without the value: %s", d.name, a.text())
		}
	}
	for _, n := range w.noted() {
		if strings.Contains(n.Path, pin) {
			t.Errorf("recorded: %+v", n)
		}
	}
}

// TestLongValuesInManyPlaces makes requests that would grow without bounds.
func TestLongValuesInManyPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	c := key(func(c *egress.Credential) {
		c.Value, c.InQuery, c.InBody = vault.NewValue([]byte(strings.Repeat("long-value.", 1000))), true, true
	})
	d := door{"do", w.run(t, egress.RunConfig{Credentials: []egress.Credential{c}}).Do}
	a := d.send(t, http.MethodPost, "https://api.test/", strings.Repeat(holder, egress.MaxPlaceholders+1), nil)
	refusedWith(t, d, a, http.StatusBadRequest, "The body has more than 1000 placeholders of secrets.")
	for _, edit := range []func(*http.Request){
		func(r *http.Request) { r.Header.Set("X-Key", strings.Repeat(holder, 9)) },
		func(r *http.Request) { r.URL.RawQuery = strings.Repeat(holder, 9) },
	} {
		a := d.send(t, http.MethodGet, "https://api.test/", "", edit)
		refusedWith(t, d, a, http.StatusRequestHeaderFieldsTooLarge, "A header or query is larger than 64 KiB with its secrets.")
	}
	if a := d.send(t, http.MethodPost, "https://api.test/", strings.Repeat(holder+",", 100), nil); a.status != 200 ||
		len(w.last(t).body) != 100*11001 {
		t.Errorf("%d bytes arrived: %.200s", len(w.last(t).body), a.text())
	}
}
