package egress_test

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/egress"
)

// TestRefusedURLs tries the spellings of addresses that are not public, each with every scheme that
// could matter.
func TestRefusedURLs(t *testing.T) {
	t.Parallel()
	g := guard(t, egress.Config{})
	for _, host := range []string{
		"127.0.0.1", "127.0.0.1.", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "[::127.0.0.1]", "[::]", "0.0.0.0", "0",
		"0177.0.0.1", "0177.1", "2130706433", "017700000001", "0x7f000001", "0x7f.0.0.1", "0X7F.1", "127.1", "127.0.1", "127.0.0.1..",
		"1.2.3.4.5", "1.2.3.999",
		"localhost", "localhost.", "LOCALHOST", "a.localhost", "metadata", "metadata.google.internal", "printer.local", "nas.home.arpa",
		"169.254.169.254", "[fd00::1]", "[fd00:ec2::254]", "[fe80::1%25eth0]", "[fe80::1%25lo]", "100.64.0.1", "198.18.0.1", "224.0.0.1",
		"255.255.255.255",
		"10.0.0.1", "172.16.0.1", "192.168.0.1", "168.63.129.16", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[2001::1]",
		"127。0。0。1", "127.0.0.1%E3%80%82", "①②⑦.0.0.1", "ⓔxample.com", "exa\u00admple.com", "\u212aernel.org", "müller.example", "",
		"-a.example", "a-.example", "a..example", ".example.com", "a b.example", "a%20b.example", "a%00b.example",
		strings.Repeat("a", 64) + ".example", strings.Repeat("abc.", 64) + "example",
		"example.com@127.0.0.1", "good@127.0.0.1", "user:secret@example.com", "@example.com", "example.com\\@127.0.0.1", "example.com:22",
		"example.com:25", "example.com:5432", "example.com:6379",
		"example.com:0", "example.com:65536", "example.com:-1", "example.com:0x1bb", "example.com:443:443",
	} {
		for _, scheme := range []string{"https://", "http://", "HTTPS://"} {
			refused(t, g, scheme+host+"/hook")
		}
	}
	for _, u := range []string{
		"", "/", "hook", "example.com", "//example.com/", "https:", "https:example.com", "https:///example.com", "http://example.com/",
		"file:///etc/passwd", "file://example.com/",
		"gopher://example.com/", "unix:/run/x.sock", "unix://example.com/", "ftp://example.com/", "ws://example.com/",
		"javascript:alert(1)", "data:,x", "https://example.com/\n",
		" https://example.com/", "https://example.com /", "https://%65xample%2ecom\x00/", "https://example.com/" + strings.Repeat("a",
			egress.MaxURL),
	} {
		refused(t, g, u)
	}
}

func refused(t testing.TB, g *egress.Guard, u string) {
	t.Helper()
	err := g.CheckURL(u)
	if e, ok := errors.AsType[*egress.Error](err); !ok || !strings.HasSuffix(e.Reason, ".") {
		t.Errorf("%.80q is not refused: %v", u, err)
	}
}

func TestAcceptedURLs(t *testing.T) {
	t.Parallel()
	g := guard(t, egress.Config{})
	for raw, want := range map[string]string{
		"https://example.com":                           "https://example.com",
		"HTTPS://Example.COM.:443/Hook?A=%2F#part":      "https://example.com/Hook?A=%2F",
		"https://xn--mller-kva.example:8443/":           "https://xn--mller-kva.example:8443/",
		"https://1.1.1.1/":                              "https://1.1.1.1/",
		"https://[2606:4700::1111]:443/":                "https://[2606:4700::1111]/",
		"https://[::ffff:1.1.1.1]:9443/":                "https://1.1.1.1:9443/",
		"https://127.0.0.1.nip.io/":                     "https://127.0.0.1.nip.io/", // its address is checked when it is dialled
		"https://0x7f.example/":                         "https://0x7f.example/",
		"https://a_b.example:80/%2e%2e/":                "https://a_b.example:80/%2e%2e/",
		"https://" + strings.Repeat("abc.", 62) + "com": "https://" + strings.Repeat("abc.", 62) + "com",
	} {
		if err := g.CheckURL(raw); err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := g.Canonical(u); err != nil || got.String() != want {
			t.Errorf("%s becomes %s (%v), want %s", raw, got, err, want)
		}
	}
}

func TestOperatorAllows(t *testing.T) {
	t.Parallel()
	g := guard(t, egress.Config{Allow: []string{
		"Mirror.corp.", "http://plain.corp:8080", "db.corp:5432", "10.1.0.0/16", "http://[fd00::7]:8080",
		"pinned.example:443=10.9.9.9:8443", " ", "192.168.1.1",
	}})
	for u, want := range map[string]bool{
		"https://mirror.corp/": true, "https://MIRROR.corp.:8443/": true, "http://mirror.corp/": false, "https://mirror.corp:22/": false,
		"https://a.mirror.corp/":  true,
		"http://plain.corp:8080/": true, "https://plain.corp:8080/": true, "http://plain.corp/": false,
		"https://db.corp:5432/": true, "https://x.corp:5432/": false,
		"https://10.1.255.255/": true, "https://10.2.0.0/": false, "https://[::ffff:10.1.0.1]/": true, "https://10.1.0.1:5432/": false,
		"http://10.1.0.1/":       false,
		"http://[fd00::7]:8080/": true, "http://[fd00::8]:8080/": false, "https://[fd00::7]/": false,
		"https://pinned.example/": true, "http://pinned.example/": false, "https://192.168.1.1/": true, "https://192.168.1.2/": false,
	} {
		if err := g.CheckURL(u); (err == nil) != want {
			t.Errorf("%s: %v", u, err)
		}
	}
}

func TestRulesAreChecked(t *testing.T) {
	t.Parallel()
	bad := []string{"https://mirror.corp", "mirror.corp:x", "mirror.corp:0", "10.0.0.0/33", "127.1", "a b", "mirror.corp=10.0.0.1:1",
		"mirror.corp:443=nowhere", "10.0.0.0/8=10.0.0.1:1", "*.corp", "fe80::1%eth0"}
	_, err := egress.New(egress.Config{Allow: bad})
	if err == nil {
		t.Fatal("all URLs were accepted")
	}
	for _, b := range bad {
		if !strings.Contains(err.Error(), `"`+b+`"`) {
			t.Errorf("%s was accepted", b)
		}
	}
}

// FuzzURL searches for a URL that passes although another parser would read its host as a
// non-public address.
func FuzzURL(f *testing.F) {
	g := guard(f, egress.Config{})
	for _, seed := range []string{"https://example.com/a?b#c", "https://[::1]/", "https://u:p@0x7f.1:443/", "https://127.0.0.1.:8443",
		"https://2130706433", "http:\\\\a", "https://%31.1.1.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if g.CheckURL(raw) != nil {
			return
		}
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		c, err := g.Canonical(u)
		if err != nil || c.Scheme != "https" || c.User != nil || c.Fragment != "" {
			t.Fatalf("%q becomes %v, %v", raw, c, err)
		}
		again, err := g.Canonical(c)
		if err != nil || again.String() != c.String() {
			t.Fatalf("%q becomes %s, then %s (%v)", raw, c, again, err)
		}
		host := c.Hostname()
		if addr, err := netip.ParseAddr(host); err == nil {
			if !egress.Public(addr) {
				t.Fatalf("%q resolves to %s", raw, addr)
			}
			return
		}
		last := host[strings.LastIndex(host, ".")+1:]
		if host != strings.ToLower(host) || strings.ContainsAny(host, "%:@[]/\\ ") || !strings.Contains(host, ".") ||
			strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdef") == "" {
			t.Fatalf("%q passes with the host %q", raw, host)
		}
	})
}
