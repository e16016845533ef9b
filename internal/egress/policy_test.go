package egress_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/egresstest"
)

// TestOtherHostsGetThePlaceholder sends requests to hosts outside the credential's list: allowed
// hosts receive the placeholder, other hosts receive nothing.
func TestOtherHostsGetThePlaceholder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	for _, cfg := range []egress.RunConfig{{Public: true}, {Hosts: []string{"evil.test", "*.evil.test"}}} {
		for _, d := range doors(t, w.run(t, cfg)) {
			for _, host := range []string{"evil.test", "api.test.evil.test"} {
				a := d.get(t, "https://"+host+"/")
				if got := w.last(t); a.status != 200 || got.site != host || got.header.Get("Authorization") != "Bearer "+holder {
					t.Errorf("%s: %s was sent %v: %s", d.name, host, got, a.text())
				}
			}
		}
	}
	for _, n := range w.noted() {
		if len(n.Credentials) != 0 || !slices.Equal(n.Refused, []string{"API_KEY"}) || n.final != egress.Sent {
			t.Errorf("recorded: %+v", n)
		}
	}
	before := len(w.arrivals())
	for _, d := range doors(t, w.run(t, egress.RunConfig{})) {
		a := d.get(t, "https://evil.test/x?q=1")
		refusedWith(t, d, a, http.StatusForbidden, "evil.test is not on the list of hosts that this workspace may reach. "+
			"An administrator can add it: parley egress create evil.test")
	}
	if after := w.arrivals(); len(after) != before {
		t.Errorf("something was sent: %+v", after[before:])
	}
	for _, n := range w.noted()[4*2:] {
		if n.Decision != egress.RefusedHost || n.final != egress.RefusedHost || n.status != 0 || n.Path != "/x" || n.Host != "evil.test" {
			t.Errorf("recorded: %+v", n)
		}
	}
}

// TestHostsAreNotConfused sends requests to hosts that resemble the credential's host.
func TestHostsAreNotConfused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	wild := key(func(c *egress.Credential) {
		c.Name, c.Placeholder, c.Hosts = "WILD", strings.Replace(holder, "A", "B", 1), []string{"*.wild.test"}
	})
	r := w.run(t, egress.RunConfig{Credentials: []egress.Credential{key(), wild}, Public: true})
	for _, d := range doors(t, r) {
		for host, want := range map[string]string{
			"api.test": value, "API.Test.": value, "api.test:443": value, "other.api.test": holder, "xapi.test": holder,
			"api.test.evil.test": holder, "api.test:8443": holder,
		} {
			a := d.get(t, "https://"+host+"/")
			if got := w.last(t).header.Get("Authorization"); a.status != 200 || got != "Bearer "+want {
				t.Errorf("%s: %s was sent %q: %s", d.name, host, got, a.text())
			}
		}
		for host, want := range map[string]string{"www.wild.test": value, "wild.test": wild.Placeholder, "xwild.test": wild.Placeholder} {
			a := d.send(t, http.MethodGet, "https://"+host+"/", "", func(r *http.Request) { r.Header.Set("X-Key", wild.Placeholder) })
			if got := w.last(t).header.Get("X-Key"); a.status != 200 || got != want {
				t.Errorf("%s: %s was sent %q: %s", d.name, host, got, a.text())
			}
		}
	}
	before := len(w.arrivals())
	for _, d := range doors(t, r) {
		for _, to := range []url.URL{
			{Host: "evil.test", User: url.User("api.test")}, {Host: "evil.test", User: url.UserPassword("api.test", "443")},
			{Host: `api.test\@evil.test`}, {Host: "api.test%2eevil.test"}, {Host: "аpi.test"}, {Host: "api。test"},
			{Host: "api.test%00.evil.test"}, {Host: "api.test:22"}, {Host: "api.test:5432"}, {Host: "api.test:0"}, {Host: "api.test:65979"},
			{Host: "api.test:443:80"}, {Host: "api..test"}, {Host: ""},
		} {
			to.Scheme, to.Path = "https", "/"
			req := (&http.Request{Method: http.MethodGet, URL: &to, Header: http.Header{"Authorization": {holder}}}).WithContext(t.Context())
			if to.User != nil && d.name == "proxy" {
				continue // Go converts it to a header
			}
			res, err := d.do(req)
			if err == nil {
				res.Body.Close()
				if res.StatusCode < 400 {
					t.Errorf("%s: %s is answered with %d", d.name, &to, res.StatusCode)
				}
			}
		}
	}
	if after := w.arrivals(); len(after) != before {
		t.Errorf("something was sent: %+v", after[before:])
	}
}

// TestWithoutTLSThereIsNoValue checks that the list applies to http:// too, and that http://
// carries a value only if an administrator allowed it.
func TestWithoutTLSThereIsNoValue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	open := key(func(c *egress.Credential) { c.AllowHTTP = true })
	for want, cfg := range map[string]egress.RunConfig{holder: {}, value: {Credentials: []egress.Credential{open}}} {
		for _, d := range doors(t, w.run(t, cfg)) {
			a := d.get(t, "http://api.test/")
			if got := w.last(t); a.status != 200 || got.site != "http://api.test" || got.header.Get("Authorization") != "Bearer "+want {
				t.Errorf("%s: sent %+v: %s", d.name, got, a.text())
			}
			hidden(t, a.text())
			a = d.get(t, "http://plain.test/")
			refusedWith(t, d, a, http.StatusForbidden, "plain.test is not on the list")
			a = d.get(t, "http://evil.test/")
			if a.status == 200 {
				t.Errorf("%s: %s", d.name, a.text())
			}
		}
	}
	for _, d := range doors(t, w.run(t, egress.RunConfig{Public: true})) {
		if a := d.get(t, "http://plain.test/"); a.status != 200 || w.last(t).header.Get("Authorization") != "Bearer "+holder {
			t.Errorf("%s: %s", d.name, a.text())
		}
	}
}

// TestRedirectsAreNotFollowed makes the credential's host redirect a program elsewhere, with
// everything it sent.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	w.hook = func(rw http.ResponseWriter, r *http.Request) {
		if r.Host == "api.test" {
			http.Redirect(rw, r, "https://evil.test/?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
		}
	}
	for _, d := range doors(t, w.run(t, egress.RunConfig{Public: true})) {
		if a := d.get(t, "https://api.test/"); a.status != http.StatusTemporaryRedirect || w.last(t).site != "api.test" {
			t.Errorf("%s: %s", d.name, a.text())
		}
		trusting := &http.Client{Transport: roundTripper(d.do), CheckRedirect: func(r *http.Request, via []*http.Request) error {
			r.Header.Set("Authorization", via[0].Header.Get("Authorization")) // like curl --location-trusted
			return nil
		}}
		trusted := door{d.name + ", trusting", trusting.Do}
		if a := trusted.get(t, "https://api.test/"); a.status != 200 || w.last(t).site != "evil.test" ||
			w.last(t).header.Get("Authorization") != "Bearer "+holder {
			t.Errorf("%s: %+v", d.name, w.last(t))
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestPlaceholdersOfOtherRunsAreText uses the placeholder of one run in another.
func TestPlaceholdersOfOtherRunsAreText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	other := key(func(c *egress.Credential) { c.Placeholder = strings.Replace(holder, "A", "Z", 1) })
	for _, d := range doors(t, w.run(t, egress.RunConfig{Credentials: []egress.Credential{other}})) {
		if a := d.get(t, "https://api.test/"); a.status != 200 || w.last(t).header.Get("Authorization") != "Bearer "+holder {
			t.Errorf("%s: %s", d.name, a.text())
		}
	}
}

// TestAddressesThatAreNotPublic requests this machine and metadata services, in every spelling,
// with a run that may reach every public host.
func TestAddressesThatAreNotPublic(t *testing.T) {
	t.Parallel()
	c := egresstest.NewCanary(t)
	z := egresstest.Serve(t, "127.0.0.1:0", map[string][][]netip.Addr{
		"inside.example": {egresstest.Addrs("127.0.0.1")}, "mixed.example": {egresstest.Addrs(nowhere, "127.0.0.1")},
		"mapped.example": {egresstest.Addrs("::ffff:127.0.0.1")},
		"rebind.example": {egresstest.Addrs(nowhere), egresstest.Addrs("127.0.0.1")}, "corp.example": {egresstest.Addrs("10.1.2.3")},
	})
	w := newWorld(t, egress.Config{Resolver: z.Resolver(), Allow: []string{"10.0.0.0/8"}})
	list := []string{"inside.example", "mixed.example", "mapped.example", "rebind.example"}
	list = append(list, "inside.example:"+c.Port, "mixed.example:"+c.Port, "rebind.example:"+c.Port)
	for _, r := range []*egress.Run{w.run(t, egress.RunConfig{Public: true}), w.run(t, egress.RunConfig{Hosts: list})} {
		for _, d := range doors(t, r) {
			for _, host := range []string{
				"127.0.0.1", "127.0.0.1.", "127.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "0", "0.0.0.0",
				"localhost", "localhost.", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
				"169.254.169.254", "metadata.google.internal", "[fd00:ec2::254]", "10.1.2.3", "192.168.0.1", "168.63.129.16",
				"inside.example", "mixed.example", "mapped.example", "corp.example",
			} {
				for _, scheme := range []string{"https", "http"} {
					a := d.send(t, http.MethodGet, scheme+"://"+host+":"+c.Port+"/", "", nil)
					if a.err == nil && a.status != 403 && a.status != 400 {
						t.Errorf("%s: %s://%s: %s", d.name, scheme, host, a.text())
					}
					a = d.send(t, http.MethodGet, scheme+"://"+host+"/", "", nil)
					if a.err == nil && a.status != 403 && a.status != 400 || strings.Contains(a.text(), "10.1.2.3") && host != "10.1.2.3" {
						t.Errorf("%s: %s://%s: %s", d.name, scheme, host, a.text())
					}
				}
			}
			for range 3 { // the first DNS answer is public, but its address has no server
				if a := d.send(t, http.MethodGet, "https://rebind.example:"+c.Port+"/", "", nil); a.status == 200 {
					t.Errorf("%s: %s", d.name, a.text())
				}
			}
		}
	}
	if n := z.Questions("rebind.example"); n < 4 {
		t.Errorf("DNS was queried %d times", n)
	}
	for _, n := range w.noted() {
		if n.final == egress.Sent || n.status != 0 {
			t.Errorf("recorded: %+v", n)
		}
	}
}

// TestTheOperatorsNetworksAreNotPublic checks that a workspace reaches the operator's additional
// networks only if its own list allows them.
func TestTheOperatorsNetworksAreNotPublic(t *testing.T) {
	t.Parallel()
	site := egresstest.NewAuthority(t)
	at := site.Site(t, http.NotFoundHandler(), "corp.example")
	port := at[strings.LastIndex(at, ":")+1:]
	z := egresstest.Serve(t, "127.0.0.1:0", map[string][][]netip.Addr{"corp.example": {egresstest.Addrs("127.0.0.1")}})
	g := guard(t, egress.Config{Roots: site.Roots(), Resolver: z.Resolver(), Allow: []string{"127.0.0.0/8"}})
	for listed, cfg := range map[bool]egress.RunConfig{true: {Hosts: []string{"corp.example:" + port}}, false: {Public: true}} {
		r, err := g.Run(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		for _, d := range doors(t, r) {
			a := d.send(t, http.MethodGet, "https://corp.example:"+port+"/", "", nil)
			if reached := a.status == http.StatusNotFound; reached != listed {
				t.Errorf("%s, listed %t: %s", d.name, listed, a.text())
			}
			if a := d.send(t, http.MethodGet, "https://127.0.0.1:"+port+"/", "", nil); a.status == http.StatusNotFound {
				t.Errorf("%s: %s", d.name, a.text())
			}
		}
	}
}

func TestRunsAreChecked(t *testing.T) {
	t.Parallel()
	g := guard(t, egress.Config{})
	for _, cfg := range []egress.RunConfig{
		{Hosts: []string{""}}, {Hosts: []string{"*"}}, {Hosts: []string{"10.0.0.1"}}, {Hosts: []string{"a.test:0"}},
		{Hosts: []string{"a.test:x"}}, {Hosts: []string{"https://a.test"}}, {Hosts: []string{"a.*.test"}}, {Hosts: []string{"0x7f.1"}},
		{Hosts: []string{"а.test"}},
		{Credentials: []egress.Credential{key(func(c *egress.Credential) { c.Hosts = []string{"*."} })}},
		{Credentials: []egress.Credential{key(func(c *egress.Credential) { c.Placeholder = "" })}},
		{Credentials: []egress.Credential{key(func(c *egress.Credential) { c.Placeholder = strings.Repeat("x", 65) })}},
		{Credentials: []egress.Credential{key(func(c *egress.Credential) { c.Placeholder = "ph_0123456789-%2F&" })}},
		{Credentials: []egress.Credential{key(func(c *egress.Credential) { c.Value = vault.Value{} })}},
		{Credentials: []egress.Credential{key(), key()}}, {Credentials: []egress.Credential{key(), key(func(c *egress.Credential) {
			c.Placeholder += "X"
		})}},
	} {
		if r, err := g.Run(cfg); err == nil {
			r.Close()
			t.Errorf("%+v is accepted", cfg)
		} else {
			hidden(t, fmt.Sprint(err))
		}
	}
}
