package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestBrowserPage runs the backend and the page of docs/guides/browser.md: the page streams an
// answer from another origin, resumes it after kill -9, and gets a new token when its own is
// revoked. A double click sends one message. A page of an origin that is not listed shows that, and
// reads nothing with the same token.
func TestBrowserPage(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs processes")
	code := make(map[string]string)
	for _, e := range example.FindAllStringSubmatch(readPage(t, "docs/guides/browser.md"), -1) {
		code[e[1]] = e[2]
	}
	browser := browse(t)
	w := newWorld(t)
	port := freePort(t)
	env := []string{"PARLEY_CORS_ORIGINS=http://127.0.0.1:" + port}
	s := w.serve(t, env)
	address, _ := w.runBackend(t, s.url, port, map[string]string{"page.html": code["html"], "server.mjs": strings.Replace(code["js"],
		"/demo`", "/w`", 1)})

	tab := browser.MustPage(address).MustWaitLoad()
	send := func(command string) {
		t.Helper()
		tab.MustWait(`() => !document.querySelector("button").disabled`)
		tab.MustEval(
			`command => { document.querySelector("input").value = command; document.querySelector("button").click(); `+
				`document.querySelector("button").click() }`, command)
	}
	shows := func(text string) {
		t.Helper()
		tab.MustWait(`text => document.querySelector("pre")?.innerText.includes(text)`, text)
	}
	send("What is 12*7+3?")
	shows("87")
	send("@text 400 deltas of 12 bytes at 100/s")
	shows("40..")
	s.kill()
	s = w.serveAt(t, strings.TrimPrefix(s.url, "http://"), env)
	shows("399..")
	var text string
	err := w.pool.QueryRow(t.Context(), `SELECT content FROM messages WHERE role = 'assistant' ORDER BY first_seq DESC LIMIT 1`).Scan(&text)
	if shown := tab.MustEval(`() => document.querySelector("pre").textContent`).Str(); err != nil || !strings.Contains(shown, text) {
		t.Errorf("the resumed answer is not the stored one: %v\n%s", err, shown)
	}
	if _, err := w.pool.Exec(t.Context(), "UPDATE api_keys SET revoked_at = now() WHERE browser"); err != nil {
		t.Fatal(err)
	}
	send("What is 2*3+1?")
	tab.MustWait(`() => !document.querySelector("button").disabled`)
	shows("7")
	var sessions, users, messages int
	err = w.pool.QueryRow(t.Context(), "SELECT count(*), count(*) FILTER (WHERE end_user = 'anna@example.com'), (SELECT count(*) FROM "+
		"messages WHERE role = 'user') FROM sessions").Scan(&sessions, &users, &messages)
	if err != nil || sessions != 1 || users != 1 || messages != 3 {
		t.Errorf("%d sessions, %d of the user, %d messages: %v", sessions, users, messages, err)
	}
	unlisted := browser.MustPage(strings.Replace(address, "127.0.0.1", "localhost", 1)).MustWaitLoad()
	unlisted.MustEval(`() => document.querySelector("button").click()`)
	unlisted.MustWait(`() => document.querySelector("pre").innerText.includes("must allow http://localhost")`)

	c, err := client.New(client.Options{URL: s.url, Workspace: "w", Key: w.key})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	made, err := c.CreateToken(t.Context(), client.TokenOptions{User: "bob", Life: time.Minute})
	if err != nil || made.User != "bob" || !strings.HasPrefix(made.Token, "brtok_"+made.TokenID) {
		t.Errorf("%+v: %v", made, err)
	}
	if ended, err := c.RevokeToken(t.Context(), made.TokenID); err != nil || ended.RevokedAt == nil || ended.Token != "" {
		t.Errorf("%+v: %v", ended, err)
	}

	other := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("<!doctype html>")) }))
	t.Cleanup(other.Close)
	read := `async (url, token) => { try { return (await fetch(url, {headers: {Authorization: "Bearer " + token}})).status } catch ` +
		`(err) { return err.name } }`
	token := tab.MustEval(`async () => (await (await fetch("/token", {method: "POST"})).json()).token`).Str()
	url := s.url + "/api/v1/workspaces/w/sessions"
	if got := tab.MustEval(read, url, token).Int(); got != 200 {
		t.Errorf("the listed origin: %d", got)
	}
	if got := browser.MustPage(other.URL).MustWaitLoad().MustEval(read, url, token).Str(); got != "TypeError" {
		t.Errorf("another origin: %s", got)
	}
}

// runBackend runs server.mjs of the files with Node.js and returns its address and its output.
func (w *world) runBackend(t *testing.T, server, port string, files map[string]string) (string, *record) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		need.Missing(t, "no node, which this example is for")
	}
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(node, "server.mjs")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PARLEY_URL="+server, "PARLEY_API_KEY="+w.key, "PORT="+port)
	log := new(record)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = wait.Result(t, "the end of the backend", cmd.Wait)
		t.Logf("%s", log.bytes())
	})
	address := "http://127.0.0.1:" + port
	wait.For(t, "the backend listens", func() bool {
		res, err := brief.Get(address)
		if err == nil {
			_ = res.Body.Close()
		}
		return err == nil
	})
	return address, log
}
