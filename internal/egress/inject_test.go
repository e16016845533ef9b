package egress_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/redact"
	"github.com/parley-server/parley/internal/store/vault"
)

// TestOnlyHeadersGetValues writes the placeholder everywhere, for a credential limited to headers
// and for one that allows queries and bodies too.
func TestOnlyHeadersGetValues(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	everywhere := key(func(c *egress.Credential) { c.InQuery, c.InBody = true, true })
	for name, c := range map[string]egress.Credential{"headers": key(), "everywhere": everywhere} {
		for _, d := range doors(t, w.run(t, egress.RunConfig{Credentials: []egress.Credential{c}})) {
			for kind, form := range map[string]struct{ sent, filled string }{
				"application/json":                  {`{"k":"` + holder + `","n":1}`, ""},
				"application/problem+json; x=y":     {`["` + holder + `"]`, ""},
				"application/x-www-form-urlencoded": {"a=" + holder + "&b=1", "a=" + url.QueryEscape(value) + "&b=1"},
				"text/plain":                        {"it is " + holder + holder, "it is " + value + value},
				"":                                  {holder, value},
			} {
				a := d.send(t, http.MethodPost, "https://api.test/"+holder+"?k="+holder+"&l=1", form.sent, func(r *http.Request) {
					r.Header.Set("Content-Type", kind)
					r.Header.Set("Cookie", "a=b; k="+holder)
					r.Header.Set(holder, "name")
				})
				got := w.last(t)
				query, body := "k="+holder+"&l=1", form.sent
				if name == "everywhere" {
					query, body = "k="+url.QueryEscape(value)+"&l=1", form.filled
				}
				if a.status != 200 || got.uri != "/"+holder+"?"+query || got.header.Get("Cookie") != "a=b; k="+value ||
					got.header.Get(holder) != "name" {
					t.Errorf("%s, %s: sent %+v: %s", d.name, name, got, a.text())
				}
				if body != "" && got.body != body || body == "" && !holds(got.body, value) {
					t.Errorf("%s, %s %s: the body is %s", d.name, name, kind, got.body)
				}
				hidden(t, a.text())
			}
		}
	}
	for _, n := range w.noted() {
		if len(n.Credentials) != 1 || !slices.Equal(n.Refused, []string{"API_KEY"}) || n.Path != "/"+holder {
			t.Errorf("recorded: %+v", n)
		}
	}
}

// holds reports whether a JSON text contains a string.
func holds(text, s string) bool {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return false
	}
	switch v := v.(type) {
	case []any:
		return v[0] == s
	case map[string]any:
		return v["k"] == s
	}
	return false
}

// TestValuesAreNotSearched uses a value that looks like the placeholder of another secret, which is
// for another host.
func TestValuesAreNotSearched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	second := key(func(c *egress.Credential) {
		c.Name, c.Placeholder, c.Value = "SECOND", strings.Replace(holder, "A", "S", 1), vault.NewValue([]byte(holder))
	})
	for _, d := range doors(t, w.run(t, egress.RunConfig{Credentials: []egress.Credential{key(), second}})) {
		d.send(t, http.MethodGet, "https://api.test/", "", func(r *http.Request) { r.Header.Set("X-Key", second.Placeholder+" "+holder) })
		if got := w.last(t).header.Get("X-Key"); got != holder+" "+value {
			t.Errorf("%s: sent %q", d.name, got)
		}
	}
}

// TestControlCharactersStayOut uses values that would end a header.
func TestControlCharactersStayOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	const lines, control = "The value of API_KEY has several lines", "A secret's value cannot stand in a header."
	for bad, why := range map[string]string{
		"12345678\r\nX-Injected: 1": lines, "12345678\n": lines, "12345678\r": lines, "1234\x005678": control, "1234\x7f5678": control,
	} {
		c := key(func(c *egress.Credential) { c.Value = vault.NewValue([]byte(bad)) })
		for _, d := range doors(t, w.run(t, egress.RunConfig{Credentials: []egress.Credential{c}})) {
			refusedWith(t, d, d.get(t, "https://api.test/"), http.StatusBadRequest, why)
		}
	}
	if all := w.arrivals(); len(all) != 0 {
		t.Errorf("arrived: %+v", all)
	}
	for _, n := range w.noted() {
		if n.final != egress.RefusedRequest {
			t.Errorf("recorded: %+v", n)
		}
	}
}

// TestOddRequestsAreRefused makes requests in process that a program could not send.
func TestOddRequestsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	r := w.run(t, egress.RunConfig{})
	for name, edit := range map[string]func(*http.Request){
		"a header's end":      func(r *http.Request) { r.Header["X-Key"] = []string{holder + "\r\nX-Other: 1"} },
		"a name's end":        func(r *http.Request) { r.Header["X-Key: 1\r\nX-Other"] = []string{holder} },
		"a blank in a name":   func(r *http.Request) { r.Header["X Key"] = []string{holder} },
		"no name":             func(r *http.Request) { r.Header[""] = []string{holder} },
		"another host":        func(r *http.Request) { r.Host = "evil.test" },
		"an opaque URL":       func(r *http.Request) { r.URL.Opaque = "//evil.test/" },
		"a tunnel":            func(r *http.Request) { r.Method = http.MethodConnect },
		"an upgrade":          func(r *http.Request) { r.Header["upgrade"] = []string{"h2c"} },
		"another scheme":      func(r *http.Request) { r.URL.Scheme = "ftp" },
		"a user":              func(r *http.Request) { r.URL.User = url.UserPassword("user", holder) },
		"no host":             func(r *http.Request) { r.URL.Host, r.Host = "", "" },
		"a method with blank": func(r *http.Request) { r.Method = "GET / HTTP/1.1\r\nX:" },
	} {
		d := door{"do", r.Do}
		a := d.send(t, http.MethodGet, "https://api.test/", "", edit)
		if _, refused := a.err.(*egress.Error); !refused {
			t.Errorf("%s: %s", name, a.text())
		}
		hidden(t, a.text())
	}
	if all := w.arrivals(); len(all) != 0 {
		t.Errorf("arrived: %+v", all)
	}
	for _, n := range w.noted() {
		if n.final != egress.RefusedRequest || strings.ContainsAny(n.Method+n.Host+n.Scheme, "\r\n") {
			t.Errorf("recorded: %+v", n)
		}
	}
}

// TestHeadersThatDoNotLeave sends headers for the proxy, and headers that claim to be from a proxy.
func TestHeadersThatDoNotLeave(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	w.hook = func(rw http.ResponseWriter, _ *http.Request) {
		conn, out, err := http.NewResponseController(rw).Hijack() // else the server sets Connection itself
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(out, "HTTP/1.1 200 OK\r\n")
		for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Alt-Svc"} {
			fmt.Fprint(out, name, ": X-Private\r\n")
		}
		fmt.Fprint(out, "X-Private: 1\r\nX-Kept: 1\r\nContent-Length: 0\r\n\r\n")
		out.Flush()
	}
	drop := []string{"Proxy-Authorization", "Proxy-Connection", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "Te", "Trailer",
		"Keep-Alive", "Expect", "Range", "If-Range", "X-Private"}
	for _, d := range doors(t, w.run(t, egress.RunConfig{})) {
		a := d.send(t, http.MethodGet, "https://api.test/", "", func(r *http.Request) {
			for _, name := range drop {
				r.Header.Set(name, holder)
			}
			r.Header.Set("Expect", "100-continue")
			r.Header["x-forwarded-proto"] = []string{"http"}
			r.Header.Set("Connection", "keep-alive, X-Private")
			r.Header.Set("Accept-Encoding", "br, zstd")
			r.Header.Set("X-Kept", "1")
		})
		if a.status != 200 || a.header.Get("X-Kept") != "1" || a.header.Get("X-Private")+a.header.Get("Alt-Svc")+
			a.header.Get("Proxy-Authenticate")+a.header.Get("Keep-Alive") != "" {
			t.Errorf("%s: %s", d.name, a.text())
		}
		got := w.last(t).header
		for _, name := range append(drop, "X-Forwarded-Proto") {
			if got.Get(name) != "" {
				t.Errorf("%s: %s: %s arrived", d.name, name, got.Get(name))
			}
		}
		if got.Get("X-Kept") != "1" || got.Get("Connection") != "close" || got.Get("Accept-Encoding") != "gzip" {
			t.Errorf("%s: arrived: %v", d.name, got)
		}
	}
}

// FuzzHeader searches for a header whose result has anything but the value at the placeholder, or
// has the value elsewhere.
func FuzzHeader(f *testing.F) {
	w := &world{guard: guard(f, egress.Config{})}
	second := key(func(c *egress.Credential) {
		c.Name, c.Placeholder, c.Hosts = "AWAY", strings.Replace(holder, "A", "B", 1), []string{"evil.test"}
	})
	r, err := w.guard.Run(egress.RunConfig{Credentials: []egress.Credential{key(), second}})
	if err != nil {
		f.Fatal(err)
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+holder))
	for _, v := range []string{"Bearer " + holder, basic, "basic " + basic[6:], holder[:20], holder + second.Placeholder,
		"a\r\nb: " + holder, "Basic " + holder, "Basic " + basic} {
		f.Add("Authorization", v, "a="+holder)
		f.Add("x-key", v, second.Placeholder)
	}
	f.Fuzz(func(t *testing.T, name, v, query string) {
		req := &http.Request{Method: "GET", URL: &url.URL{Scheme: "https", Host: "api.test", Path: "/", RawQuery: query},
			Header: http.Header{name: {v}}}
		out, err := r.Fill(req)
		if err != nil {
			return
		}
		for key, values := range out.Header {
			for _, got := range values {
				if http.CanonicalHeaderKey(name) != key {
					continue
				}
				want := strings.ReplaceAll(v, holder, value)
				if plain, ok := plainBasic(v); ok {
					want = v[:6] + base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(plain, holder, value)))
					if !strings.Contains(plain, holder) {
						want = v
					}
				}
				if got != want {
					t.Fatalf("%s: %q becomes %q, want %q", name, v, got, want)
				}
				if strings.Contains(v, holder) && strings.ContainsAny(got, "\r\n\x00") {
					t.Fatalf("%q has a control character", got)
				}
			}
		}
		if out.URL.RawQuery != query || out.URL.Host != "api.test" || strings.Contains(fmt.Sprint(out.Header), second.Name) {
			t.Fatalf("%q becomes %q", query, out.URL.RawQuery)
		}
	})
}

func plainBasic(v string) (string, bool) {
	if len(v) <= 6 || !strings.EqualFold(v[:6], "Basic ") {
		return "", false
	}
	plain, err := base64.StdEncoding.DecodeString(v[6:])
	return string(plain), err == nil
}

// TestBodiesAreNotHeld checks that a body is streamed if it cannot contain a value.
func TestBodiesAreNotHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	ca := newStreamSite(t)
	r, err := ca.guard.Run(egress.RunConfig{Hosts: []string{"api.test"}, Record: w.record,
		Redact: redact.New(redact.Secret{Name: "API_KEY", Value: []byte(value)})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	for _, d := range doors(t, r) {
		from, to := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.test/", from)
		if err != nil {
			t.Fatal(err)
		}
		res, err := d.do(req) // the response begins before the request ends
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"one", "two"} {
			if _, err := io.WriteString(to, word); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 3)
			if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != word {
				t.Errorf("%s: %q, %v", d.name, got, err)
			}
		}
		to.Close()
		if rest, err := io.ReadAll(res.Body); err != nil || len(rest) != 0 {
			t.Errorf("%s: %q, %v", d.name, rest, err)
		}
		res.Body.Close()
	}
}
