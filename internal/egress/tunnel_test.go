package egress_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/egress"
)

// connect requests a tunnel from a proxy, with the target unchanged.
func connect(t *testing.T, at, target string) (net.Conn, *bufio.Reader, int) {
	t.Helper()
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: api.test\r\n\r\n", target)
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return conn, in, 0
	}
	return conn, in, res.StatusCode
}

// tunnel returns a connection to api.test as a program sees it.
func tunnel(t *testing.T, r *egress.Run, at, sni string, protocols ...string) (*tls.Conn, error) {
	t.Helper()
	conn, _, status := connect(t, at, "api.test:443")
	if status != 200 {
		t.Fatalf("no tunnel: %d", status)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(r.CA())
	// the test verifies the proxy's certificate
	c := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: sni, NextProtos: protocols, InsecureSkipVerify: sni != "api.test"})
	return c, c.HandshakeContext(t.Context())
}

// TestATunnelLeadsToOneHost names other hosts inside a tunnel to api.test, in every way that HTTP
// has.
func TestATunnelLeadsToOneHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	r := w.run(t, egress.RunConfig{Public: true})
	at := proxy(t, r)
	key := "Authorization: Bearer " + holder + "\r\n"
	smuggled := "GET / HTTP/1.1\r\nHost: evil.test\r\n" + key + "\r\n"
	for name, raw := range map[string]string{
		"other host":       "GET / HTTP/1.1\r\nHost: evil.test\r\n" + key + "\r\n",
		"other port":       "GET / HTTP/1.1\r\nHost: api.test:8443\r\n" + key + "\r\n",
		"longer host":      "GET / HTTP/1.1\r\nHost: api.test.evil.test\r\n" + key + "\r\n",
		"user in host":     "GET / HTTP/1.1\r\nHost: api.test@evil.test\r\n" + key + "\r\n",
		"path in host":     "GET / HTTP/1.1\r\nHost: api.test/evil.test\r\n" + key + "\r\n",
		"two hosts":        "GET / HTTP/1.1\r\nHost: api.test\r\nHost: evil.test\r\n" + key + "\r\n",
		"no host":          "GET / HTTP/1.1\r\n" + key + "\r\n",
		"no host, 1.0":     "GET / HTTP/1.0\r\n" + key + "\r\n",
		"empty host":       "GET / HTTP/1.1\r\nHost:\r\n" + key + "\r\n",
		"absolute":         "GET https://evil.test/ HTTP/1.1\r\nHost: api.test\r\n" + key + "\r\n",
		"absolute, own":    "GET https://api.test/ HTTP/1.1\r\nHost: api.test\r\n" + key + "\r\n",
		"absolute, plain":  "GET http://plain.test/ HTTP/1.1\r\nHost: api.test\r\n" + key + "\r\n",
		"tunnel in it":     "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n" + key + "\r\n",
		"tunnel to itself": "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test\r\n" + key + "\r\n",
		"asterisk":         "OPTIONS * HTTP/1.1\r\nHost: api.test\r\n" + key + "\r\n",
		"trace":            "TRACE / HTTP/1.1\r\nHost: api.test\r\n" + key + "\r\n",
		"websocket":        "GET / HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + key + "\r\n",
		"h2c":              "GET / HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" + key + "\r\n",
		"blank before":     "GET / HTTP/1.1\r\nHost : evil.test\r\nHost: api.test\r\n" + key + "\r\n",
		"two lengths":      "POST / HTTP/1.1\r\nHost: api.test\r\nContent-Length: 0\r\nContent-Length: 5\r\n" + key + "\r\n" + smuggled,
		"two encodings":    "POST / HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked, identity\r\n" + key + "\r\n0\r\n\r\n" + smuggled,
		"unknown encoding": "POST / HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: xchunked\r\nContent-Length: 5\r\n" + key +
			"\r\n" + smuggled,
		"HTTP/2":            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"no HTTP":           "SSH-2.0-x\r\n\r\n",
		"header without :":  "GET / HTTP/1.1\r\nHost: api.test\r\nX\r\n" + key + "\r\n",
		"header too large":  "GET / HTTP/1.1\r\nHost: api.test\r\nX: " + strings.Repeat("x", 2*egress.MaxHeader) + "\r\n" + key + "\r\n",
		"URL too long":      "GET /" + strings.Repeat("x", egress.MaxRequestURL) + " HTTP/1.1\r\nHost: api.test\r\n" + key + "\r\n",
		"body too large":    fmt.Sprintf("POST / HTTP/1.1\r\nHost: api.test\r\nContent-Length: %d\r\n%s\r\n", egress.MaxRequestBody+1, key),
		"body of any bytes": "GET / HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 3\r\n" + key + "\r\nabc",
	} {
		c, err := tunnel(t, r, at, "api.test")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, raw); err != nil {
			t.Logf("%s: %v", name, err) // the response may arrive before the end of the request
		}
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		want := map[string]int{"other host": 421, "other port": 421, "longer host": 421, "absolute": 400, "tunnel in it": 400,
			"websocket": 501, "h2c": 501, "trace": 405, "header too large": 431, "URL too long": 414, "body too large": 413}[name]
		if res.StatusCode < 400 || want != 0 && res.StatusCode != want {
			t.Errorf("%s: %s %s", name, res.Status, body)
		}
		c.Close()
	}
	if all := w.arrivals(); len(all) != 0 {
		t.Errorf("arrived: %+v", all)
	}
}

// TestNothingIsSmuggled sends a request that two servers may parse as two. Exactly one request
// arrives, and the second one's host is checked like that of every request.
func TestNothingIsSmuggled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	r := w.run(t, egress.RunConfig{Public: true})
	at := proxy(t, r)
	inner := "GET /smuggled HTTP/1.1\r\nHost: evil.test\r\nAuthorization: " + holder + "\r\n\r\n"
	for name, raw := range map[string]string{
		"length and chunks": fmt.Sprintf(
			"POST /one HTTP/1.1\r\nHost: api.test\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", len(inner)+5, inner),
		"length": fmt.Sprintf("POST /one HTTP/1.1\r\nHost: api.test\r\nContent-Length: %d\r\n\r\n%s", len(inner), inner),
		"trailer": "POST /one HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\nTrailer: Host, " +
			"Authorization\r\n\r\n0\r\nHost: evil.test\r\nAuthorization: " + holder + "\r\n\r\n",
		"folded header": "POST /one HTTP/1.1\r\nHost: api.test\r\nX: 1\r\n Host: evil.test\r\n\r\n",
	} {
		c, err := tunnel(t, r, at, "api.test")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, raw+"GET /last HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n"); err != nil {
			t.Error(err)
		}
		in := bufio.NewReader(c)
		for {
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				break
			}
			body, _ := io.ReadAll(res.Body)
			hidden(t, string(body))
			if res.StatusCode == 200 && strings.HasPrefix(string(body), "GET /smuggled") {
				t.Errorf("%s: a second request was answered: %s", name, body)
			}
		}
		c.Close()
	}
	for _, got := range w.arrivals() {
		if got.uri != "/one" && got.uri != "/last" || got.site != "api.test" || got.header.Get("Authorization") != "" || got.host != "api.test" {
			t.Errorf("arrived: %+v", got)
		}
	}
}

// TestTunnelsAreForTheirHost uses programs whose TLS is for another host or another protocol.
func TestTunnelsAreForTheirHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	r := w.run(t, egress.RunConfig{Public: true})
	at := proxy(t, r)
	for _, sni := range []string{"evil.test", "other.api.test", "test"} {
		if _, err := tunnel(t, r, at, sni); err == nil {
			t.Errorf("a tunnel to api.test connects to %s", sni)
		}
	}
	if _, err := tunnel(t, r, at, "api.test", "h2"); err == nil {
		t.Error("a tunnel uses HTTP/2")
	}
	for _, sni := range []string{"", "api.test", "API.test"} {
		c, err := tunnel(t, r, at, sni, "h2", "http/1.1")
		if err != nil {
			t.Errorf("%q: %v", sni, err)
			continue
		}
		if p := c.ConnectionState().NegotiatedProtocol; p != "http/1.1" {
			t.Errorf("a tunnel uses %q", p)
		}
		if names := c.ConnectionState().PeerCertificates[0].DNSNames; len(names) != 1 || names[0] != "api.test" {
			t.Errorf("its certificate is for %q", names)
		}
	}
}

func TestRefusedTunnels(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	r := w.run(t, egress.RunConfig{Public: true})
	at := proxy(t, r)
	targets := map[string]int{
		"api.test:22": 403, "api.test:5432": 403, "127.0.0.1:6379": 403, "api.test": 400, "api.test:": 400, ":443": 400, "api.test:0": 400,
		"api.test:65536": 400, "api.test:+443": 400, "api.test:443:443": 400, "user@api.test:443": 400, "user:pw@api.test:443": 400,
		"https://api.test:443": 400, "2130706433:443": 400, "0x7f.1:443": 400, "127.1:443": 400, "[fe80::1%25eth0]:443": 400,
		"[::1:443": 400, "/": 400, "a_b..c:443": 400, "api.test:443/x": 400, "api.test\x7f:443": 400,
	}
	for target, want := range targets {
		conn, _, status := connect(t, at, target)
		conn.Close()
		if status != want {
			t.Errorf("%q: %d, want %d", target, status, want)
		}
	}
	for raw, want := range map[string]int{
		"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n": 400, "GET https://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n": 400,
		"GET ftp://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n": 400, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n": 400,
		"GET http://user@api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n":            400,
		"TRACE http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n":               405,
		"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nUpgrade: h2c\r\n\r\n": 501,
	} {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, raw)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		conn.Close()
		if err != nil || res.StatusCode != want {
			t.Errorf("%q: %v %v", raw, res, err)
		}
	}
	if all := w.arrivals(); len(all) != 0 {
		t.Errorf("arrived: %+v", all)
	}
	for _, n := range w.noted() {
		if n.Method == http.MethodConnect && n.Decision != egress.RefusedRequest && n.Decision != egress.RefusedAddress || n.final != n.Decision {
			t.Errorf("recorded: %+v", n)
		}
	}
}

// TestRunsDoNotTrustEachOther checks that the certificates of a run are for its own programs, and
// that no key leaves.
func TestRunsDoNotTrustEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	one, two := w.run(t, egress.RunConfig{}), w.run(t, egress.RunConfig{})
	if _, err := tunnel(t, two, proxy(t, one), "api.test"); err == nil {
		t.Error("a run trusts another's certificates")
	}
	block, rest := pem.Decode(one.CA())
	if block == nil || block.Type != "CERTIFICATE" || len(rest) != 0 || strings.Contains(string(one.CA()), "KEY") {
		t.Fatalf("CA returns %s, want only a certificate", one.CA())
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil || !cert.IsCA || cert.MaxPathLen != 0 || len(cert.SubjectKeyId) == 0 {
		t.Errorf("%+v, %v", cert, err)
	}
	if again := one.CA(); string(again) != string(one.CA()) || string(again) == string(two.CA()) {
		t.Error("a run does not have its own authority")
	}
}

// FuzzAuthority searches for a tunnel target that is parsed as a host other than the one it names.
func FuzzAuthority(f *testing.F) {
	for _, seed := range []string{"api.test:443", "API.TEST.:443", "[::1]:443", "u@a.test:443", "0x7f.1:443", "a.test:0443",
		"a\x00.test:443", "a.test:443 ", "ａ.test:443", "[fe80::1%25x]:443"} {
		f.Add(seed)
	}
	g := guard(f, egress.Config{})
	f.Fuzz(func(t *testing.T, text string) {
		u, err := egress.AuthorityOf(text)
		if err != nil {
			return
		}
		host, port, err := net.SplitHostPort(text)
		if err != nil {
			t.Fatalf("%q is read as %s", text, u)
		}
		if u.Scheme != "https" || u.User != nil || u.Path != "" || u.RawQuery != "" || strings.ContainsAny(u.Host, "@/\\% \r\n\t?#") {
			t.Fatalf("%q is read as %s", text, u)
		}
		if net.ParseIP(host) == nil && u.Hostname() != strings.TrimSuffix(strings.ToLower(host), ".") ||
			net.ParseIP(host) != nil && !net.ParseIP(host).Equal(net.ParseIP(u.Hostname())) {
			t.Fatalf("%q is read as %s", text, u)
		}
		if want := strings.TrimLeft(port, "0"); u.Port() != want && (want != "443" || u.Port() != "") {
			t.Fatalf("%q is read as %s", text, u)
		}
		if c, err := g.Canonical(u); err == nil && c.Host != u.Host {
			t.Fatalf("%q is read as %s, and requested from %s", text, u, c)
		}
	})
}

// FuzzHosts searches for a host that matches an entry which does not cover it.
func FuzzHosts(f *testing.F) {
	for _, seed := range []string{"api.test", "*.api.test", "api.test:8443", "*.test:1", "*.test", "*.*.test", "*", "a.test.",
		"A.test", "*.1"} {
		f.Add(seed, "www.api.test", uint16(443))
		f.Add(seed, "api.test", uint16(8443))
		f.Add(seed, ".test", uint16(443))
	}
	f.Fuzz(func(t *testing.T, pattern, name string, port uint16) {
		matches, err := egress.Matches(pattern, "https", name, port)
		if err != nil || !matches {
			return
		}
		host, at, ported := strings.Cut(strings.ToLower(pattern), ":")
		host = strings.TrimSuffix(host, ".")
		suffix, wild := strings.CutPrefix(host, "*")
		if !ported && port != 443 || ported && strings.TrimLeft(at, "0") != fmt.Sprint(port) || !wild && name != host ||
			wild && (!strings.HasSuffix(name, suffix) || len(name) == len(suffix)) || strings.Contains(suffix, "*") {
			t.Fatalf("%q matches %s:%d", pattern, name, port)
		}
	})
}
