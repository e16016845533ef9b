package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAKeyIsTakenAsItComes checks that white space around a key from a file or a command is
// removed, and that a value that cannot be a key is rejected before a request is sent.
func TestAKeyIsTakenAsItComes(t *testing.T) {
	t.Parallel()
	sh, srv, _ := world(t)
	key := sh.environ[len(sh.environ)-1]
	sh.environ = append(sh.environ[:len(sh.environ)-1:len(sh.environ)-1], key+"\r\n", "PARLEY_URL= "+srv.url+"\n")
	if out := sh.must("send", "@say Hi."); !strings.Contains(out, "Hi.") {
		t.Errorf("%s", out)
	}
	sh.must("ready")
	if _, errs, code := sh.run("send", "--url", srv.url+" ", "@say Hi."); code != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
	for _, bad := range []string{key + "\nx", key[:20] + "\u200b" + key[20:]} {
		sh.environ[len(sh.environ)-2] = bad
		for _, args := range [][]string{{"send", "@say Hi."}, {"mcp"}, {"sessions", "list"}} {
			if _, errs, code := sh.run(args...); code != 2 || !strings.Contains(errs, "PARLEY_API_KEY") ||
				strings.Contains(errs, strings.TrimPrefix(key, "PARLEY_API_KEY=")[:16]) || strings.Contains(errs, "again") {
				t.Errorf("%v: exit code %d: %s", args, code, errs)
			}
		}
	}
}

// TestWhatIsNotParleyIsSaid checks the page of a proxy and the response of another server: neither
// is reported as a refusal, a success or a bug of this command. The address is shown without its
// password.
func TestWhatIsNotParleyIsSaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		answer string
	}{
		{200, "<h1>Log in</h1>"}, {404, "<h1>Not found</h1>"}, {403, "<h1>Forbidden</h1>"}, {409, ""},
		{200, "{}"}, {200, `{"status":"up","data":"x"}`}, {404, `{"error":"not_found"}`},
	} {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.answer)
		}))
		t.Cleanup(other.Close)
		address := strings.Replace(other.URL, "://", "://user:pass-word@", 1)
		sh := shell{t: t, dir: t.TempDir(), environ: []string{"PARLEY_URL=" + address, "PARLEY_WORKSPACE=test", "PARLEY_API_KEY=x"}}
		if err := os.WriteFile(filepath.Join(sh.dir, "a.csv"), []byte("a"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{
			"ready", "sessions list", "sessions show x", "sessions tail x", "sessions cancel x", "sessions export x --format json",
			"sessions context x",
			"send hi", "send --output json hi", "send --callback https://app.example/ hi", "approvals list", "approvals show x", "approvals allow x",
			"files list", "files up a.csv", "files down x", "callbacks show x", "callbacks redeliver x",
		} {
			_, errs, code := sh.run(strings.Fields(line)...)
			if code != 5 || !strings.Contains(errs, "is not from Parley: ") || !strings.Contains(errs, "Set PARLEY_URL") ||
				strings.Contains(errs, "pass-word") || strings.Contains(errs, "Trying again") {
				t.Errorf("%d %s: parley %s: exit code %d: %s", c.status, c.answer, line, code, errs)
			}
		}
		call := strings.NewReader(mcpCall("1", "hi"))
		if out, errs, code := sh.pipe(call, "mcp"); code != 0 || !strings.Contains(out, `"id":1`) ||
			!strings.Contains(out, "is not from Parley: ") {
			t.Errorf("%d %s: parley mcp: exit code %d: %s%s", c.status, c.answer, code, out, errs)
		}
	}
}

// TestAnAddressIsShownWithoutItsPassword checks an address with a server and one without.
func TestAnAddressIsShownWithoutItsPassword(t *testing.T) {
	t.Parallel()
	sh, srv, _ := world(t)
	for address, want := range map[string]int{
		strings.Replace(srv.url, "://", "://user:pass-word@", 1): 0,
		"http://user:pass-word@127.0.0.1:1":                      5,
	} {
		if _, errs, code := sh.run("ready", "--url", address); code != want || !strings.Contains(errs, "@127.0.0.1") ||
			strings.Contains(errs, "pass-word") {
			t.Errorf("%s: exit code %d: %s", address, code, errs)
		}
	}
}
