package app_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// lines collects the lines of a log.
type lines struct {
	mu  sync.Mutex
	all []map[string]any
	raw bytes.Buffer
}

func (l *lines) Write(line []byte) (int, error) {
	var fields map[string]any
	if err := json.Unmarshal(bytes.TrimSpace(line), &fields); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fields)
	return l.raw.Write(line)
}

// find returns the lines with a message whose fields have these values.
func (l *lines) find(msg string, fields ...string) (found []map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for _, line := range l.all {
		if line["msg"] != msg {
			continue
		}
		for i := 0; i < len(fields); i += 2 {
			if line[fields[i]] != fields[i+1] {
				continue next
			}
		}
		found = append(found, line)
	}
	return found
}

func (l *lines) logger() *slog.Logger {
	return app.Config{LogFormat: "json", LogLevel: slog.LevelDebug}.Logger(l)
}

// newKey creates a workspace with a key of all scopes.
func newKey(t *testing.T, dsn string) (slug, id, key string) {
	t.Helper()
	pool := dbtest.Pool(t, dsn)
	ws, err := workspace.New(pool).Create(t.Context(), "logs", "", "")
	if err != nil {
		t.Fatal(err)
	}
	made, key, err := apikey.New(pool, nil).Create(t.Context(), apikey.Grant{Workspace: ws.ID, Name: "logs", Scopes: apikey.All})
	if err != nil {
		t.Fatal(err)
	}
	return ws.Slug, made.ID, key
}

// call sends a request with an id and returns its answer.
func call(t *testing.T, key, requestID, method, url, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", requestID)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// TestLogFollowsAMessage finds a message by the id of its request: the line of the request, which
// is written when the stream ends, and the line of the turn. No line has its text or a secret.
func TestLogFollowsAMessage(t *testing.T) {
	t.Parallel()
	provider := modeltest.OpenAI(modeltest.Say("canary-", "answer"))
	t.Cleanup(provider.Close)
	dsn, log := dbtest.DSN(t), &lines{}
	at, _, err := serve(t, app.Options{Log: log.logger()}, "DATABASE_URL="+dsn, "PARLEY_LISTEN=127.0.0.1:0",
		"PARLEY_BASE_URL=https://parley.example",
		"OPENAI_API_KEY=canary-provider-key", "OPENAI_BASE_URL="+provider.URL+"/v1", "PARLEY_MODEL=openai/gpt-5-mini")
	if err != nil {
		t.Fatal(err)
	}
	slug, keyID, key := newKey(t, dsn)
	api := at + "/api/v1/workspaces/" + slug

	status, answer := call(t, key, "req-stream", "POST", api+"/messages", `{"command":"canary-message"}`)
	if status != 200 || !strings.Contains(answer, "event: done") {
		t.Fatalf("%d %s", status, answer)
	}
	call(t, key, "req-missing", "GET", api+"/sessions/canary-path?sig=canary-query", "")
	call(t, "prl_canarykey", "req-denied", "GET", api+"/sessions", "")
	call(t, key, "req-nowhere", "GET", at+"/api/v1/canary-route", "")

	until(t, func() bool { return len(log.find("turn finished", "request", "req-stream")) == 1 })
	until(t, func() bool { return len(log.find("request", "request", "req-stream")) == 1 })
	turn, request := log.find("turn finished", "request", "req-stream")[0], log.find("request", "request", "req-stream")[0]
	for field, want := range map[string]any{
		"level": "INFO", "method": "POST", "route": "/api/v1/workspaces/{id}/messages", "status": 200.0, "key": keyID,
		"bytes":   float64(len(answer)),
		"session": turn["session"], "turn": turn["turn"],
	} {
		if request[field] != want {
			t.Errorf("the request's %s is %v, not %v", field, request[field], want)
		}
	}
	for field, want := range map[string]any{
		"level": "INFO", "state": "completed", "steps": 1.0, "tools": 0.0, "attempts": 1.0, "model": "openai/gpt-5-mini",
		"input_tokens": 10.0, "output_tokens": 5.0, "key": keyID,
	} {
		if turn[field] != want {
			t.Errorf("the turn's %s is %v, not %v", field, turn[field], want)
		}
	}
	session, _ := turn["session"].(string)
	call(t, key, "req-resumed", "GET", api+"/sessions/"+session+"/events?after=0", "")
	until(t, func() bool { return len(log.find("request", "request", "req-resumed", "session", session)) == 1 })
	first, _ := turn["first_text_ms"].(float64)
	whole, _ := turn["duration_ms"].(float64)
	if cost, ok := turn["cost_usd"].(float64); first <= 0 || whole < first || whole > float64(wait.Limit.Milliseconds()) || !ok || cost <= 0 {
		t.Errorf("first text after %v of %v, cost %v", first, whole, turn["cost_usd"])
	}
	for _, want := range []struct{ id, route, level string }{
		{"req-missing", "/api/v1/workspaces/{id}/sessions/{sessionId}", "INFO"}, {"req-denied", "/api/v1/workspaces/{id}/sessions", "INFO"},
		{"req-nowhere", "/", "INFO"},
	} {
		if n := len(log.find("request", "request", want.id, "route", want.route, "level", want.level)); n != 1 {
			t.Errorf("%s has %d lines with the route %s", want.id, n, want.route)
		}
	}
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	begin := log.find("ready", "model", "openai/gpt-5-mini", "base_url", "https://parley.example")
	if len(begin) != 1 || !strings.HasSuffix(begin[0]["database"].(string), "/"+config.Database) || begin[0]["sandbox"] == "" {
		t.Errorf("the line of the start: %v", begin)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	for _, secret := range []string{"canary", key, vaultKey, dsn} {
		if i := strings.Index(log.raw.String(), secret); i >= 0 {
			t.Errorf("the log has %q: …%s…", secret, log.raw.String()[max(0, i-200):min(log.raw.Len(), i+100)])
		}
	}
}

// TestFailingProviderIsLogged sends a message to a provider that rejects the key. The turn's line has
// the code of the failure, and an error line has the provider.
func TestFailingProviderIsLogged(t *testing.T) {
	t.Parallel()
	provider := modeltest.OpenAI(&modeltest.Script{Replies: []modeltest.Reply{{Status: 401,
		Body: `{"error":{"message":"bad key","code":"invalid_api_key"}}`}}})
	t.Cleanup(provider.Close)
	dsn, log := dbtest.DSN(t), &lines{}
	at, _, err := serve(t, app.Options{Log: log.logger()}, "DATABASE_URL="+dsn, "PARLEY_LISTEN=127.0.0.1:0",
		"OPENAI_API_KEY=k", "OPENAI_BASE_URL="+provider.URL+"/v1", "PARLEY_MODEL=openai/gpt-5-mini")
	if err != nil {
		t.Fatal(err)
	}
	slug, _, key := newKey(t, dsn)
	call(t, key, "req-1", "POST", at+"/api/v1/workspaces/"+slug+"/messages", `{"command":"hello"}`)
	until(t, func() bool {
		return len(log.find("turn finished", "request", "req-1", "error", "model_error", "state", "failed")) == 1
	})
	if n := len(log.find("the model failed", "request", "req-1", "provider", "openai", "level", "ERROR")); n != 1 {
		t.Errorf("%d error lines of the provider", n)
	}
}

// TestOutageOfTheDatabaseHasAnEnd refuses a replica's connections for a while.
func TestOutageOfTheDatabaseHasAnEnd(t *testing.T) {
	t.Parallel()
	b, log := newBridge(t, dbtest.DSN(t)), &lines{}
	at, _, err := serve(t, app.Options{Log: log.logger()}, "DATABASE_URL="+b.through, "PARLEY_LISTEN=127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return ready(t, at) })
	b.proxy.Refuse(true)
	b.proxy.Cut()
	until(t, func() bool { return len(log.find("database lost", "level", "ERROR")) == 1 })
	b.proxy.Refuse(false)
	until(t, func() bool { return len(log.find("database is back", "level", "INFO")) == 1 })
}
