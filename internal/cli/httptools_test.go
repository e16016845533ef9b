package cli_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-server/parley/docs"
	"github.com/parley-server/parley/internal/app/demo"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

var (
	pageFile     = regexp.MustCompile("(?ms)^```yaml file=(\\S+)\n(.*?)^```$")
	pageCommands = regexp.MustCompile("(?ms)^```sh\n(parley .*?)^```$")
	pagePost     = regexp.MustCompile(`(?m)^     -d '(\{"output".*\})'$`)
)

// TestHTTPToolsPage runs the examples of docs/guides/http-tools.md with the demo's API: operations
// of an OpenAPI document, and a tool whose result is posted later.
func TestHTTPToolsPage(t *testing.T) {
	t.Parallel()
	tickets, err := demo.StartTickets()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tickets.Close() })
	dsn := dbtest.DSN(t)
	srv := serve(t, dsn, "127.0.0.1:0", "PARLEY_EGRESS_ALLOW="+tickets.Pin())
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dsn}}
	sh.must("workspace", "create", "demo")
	key := strings.TrimSpace(sh.must("keys", "create", "--name", "dev", "--scope", "all", "-w", "demo"))
	sh.environ = []string{"PARLEY_URL=" + srv.url, "PARLEY_WORKSPACE=demo", "PARLEY_API_KEY=" + key}
	page, err := docs.Files.ReadFile("guides/http-tools.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range pageFile.FindAllStringSubmatch(string(page), -1) {
		if err := os.WriteFile(filepath.Join(sh.dir, f[1]), []byte(f[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var outs []string
	for _, block := range pageCommands.FindAllStringSubmatch(string(page), -1) {
		for line := range strings.SplitSeq(strings.TrimSpace(block[1]), "\n") {
			out, errs, code := sh.run(arguments(line)...)
			if code != 0 {
				t.Fatalf("%s: exit code %d, %s", line, code, errs)
			}
			outs = append(outs, out+errs)
		}
	}
	if len(outs) != 6 || !strings.Contains(outs[2], "wobbles") || strings.Contains(outs[2], "Coffee") || !strings.Contains(outs[3], "Coffee") {
		t.Fatalf("%q", outs)
	}
	sent := make(chan string, 1)
	go func() {
		out, errs, _ := sh.run("send", "@call order {\"item\":\"chairs\"}\n@say Ordered.")
		sent <- out + errs
	}()
	url := awaitOrder(t, tickets)
	post := pagePost.FindStringSubmatch(string(page))
	if post == nil {
		t.Fatal("the page does not post a result")
	}
	if status, answer := postJSON(t, srv.url+strings.TrimPrefix(url, srv.url), key, post[1]); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	if out := wait.Receive(t, "the answer", sent); !strings.Contains(out, "Ordered.") {
		t.Errorf("%s", out)
	}
}

// arguments splits a line of the page into the arguments of parley.
func arguments(line string) (list []string) {
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(strings.TrimPrefix(line, "parley "), -1) {
		list = append(list, m[1]+m[2])
	}
	return list
}

// awaitOrder returns the address for the result of the first order.
func awaitOrder(t *testing.T, tickets *demo.Tickets) (url string) {
	t.Helper()
	wait.For(t, "the order", func() bool {
		if orders := tickets.Orders(); len(orders) > 0 {
			url = orders[0]
		}
		return url != ""
	})
	return url
}

// postJSON posts a body with a key.
func postJSON(t *testing.T, url, key, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}
