package app_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

// TestDevModeAnswersThisMachineOnly checks that a web page cannot reach development mode by a
// rebound name or across origins, on any path, and that the key of this machine does not work
// behind a proxy.
func TestDevModeAnswersThisMachineOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log bytes.Buffer
	at, stop, err := serve(t, app.Options{DevDir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))}, "DATABASE_URL="+dbtest.DSN(t),
		"PARLEY_LISTEN=127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	env, err := app.ReadDevEnv(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/v1/openapi", "/healthz", "/.well-known/agent-card.json", "/openai/v1/models",
		"/api/v1/workspaces/demo/sessions", "/nothing"} {
		for name, foreign := range map[string]string{"Host": "evil.example:8080", "Origin": "https://evil.example"} {
			if code := ask(t, at+path, env.APIKey, name, foreign); code != http.StatusForbidden {
				t.Errorf("GET %s with %s %s: %d", path, name, foreign, code)
			}
		}
	}
	sessions := at + "/api/v1/workspaces/demo/sessions"
	for _, name := range []string{"X-Forwarded-For", "X-Real-IP", "CF-Connecting-IP", "True-Client-IP", "X-Client-IP"} {
		if code := ask(t, sessions, env.APIKey, name, "192.0.2.1"); code != http.StatusUnauthorized {
			t.Errorf("the development key through a proxy that sends %s: %d", name, code)
		}
	}
	if code := ask(t, sessions, env.APIKey, "Origin", "http://localhost:3000"); code != http.StatusOK {
		t.Errorf("a page of this machine: %d", code)
	}
	if err := stop(); err != nil || strings.Contains(log.String(), "cgroup") { // the banner has a line about it
		t.Errorf("%v, the log is\n%s", err, log.String())
	}
}

// TestUnknownPathsOfOpenAIClientsNameWhatExists checks that a client with a wrong base URL or path
// gets the list of the existing paths.
func TestUnknownPathsOfOpenAIClientsNameWhatExists(t *testing.T) {
	t.Parallel()
	at, _, err := serve(t, app.Options{DevDir: t.TempDir()}, "DATABASE_URL="+dbtest.DSN(t), "PARLEY_LISTEN=127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for path, base := range map[string]string{
		"/openai/v1/embeddings": "/openai/v1", "/openai/v1": "/openai/v1", "/openai/chat/completions": "/openai/v1", "/v1/audio/speech": "/v1",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusNotFound || !strings.Contains(string(text), "Below "+base+" there are GET models") {
			t.Errorf("%s: %d %s", path, res.StatusCode, text)
		}
	}
}

// ask returns the status of a GET with one additional header.
func ask(t *testing.T, url, key, name, value string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	if r.Header.Set(name, value); name == "Host" {
		r.Host = value
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}
