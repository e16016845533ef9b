package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/dbtest/canary"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// eavesdropper records every response, including headers and streams.
type eavesdropper struct {
	next  http.Transport
	heard record
}

// RoundTrip implements http.RoundTripper.
func (e *eavesdropper) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := e.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(&e.heard, res.Status, res.Header)
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(res.Body, &e.heard), res.Body}
	return res, nil
}

// spied is a world whose database, servers, responses, commands and callbacks are recorded.
type spied struct {
	*world
	t       *testing.T
	db      *dbtest.Server
	answers *eavesdropper
	said    record // output of commands
	told    record // requests to callbacks
	hook    string
	env     []string // additional environment of servers
	servers []*server
}

func newSpied(t *testing.T) *spied {
	t.Helper()
	s := &spied{t: t, db: dbtest.NewServer(t, canary.Settings()...), answers: &eavesdropper{}}
	s.world = newWorldOn(t, s.db.DSN())
	s.client = &http.Client{Transport: s.answers}
	t.Cleanup(s.answers.next.CloseIdleConnections)
	s.key = s.parley(t, "keys", "create", "--workspace", "w", "--name", "all", "--scope", "chat", "--scope", "sessions:read",
		"--scope", "secret")
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintln(&s.told, r.Header, string(body))
	}))
	t.Cleanup(receiver.Close)
	s.hook = receiver.URL
	return s
}

func (s *spied) start() *server {
	s.t.Helper()
	srv := s.serve(s.t, append([]string{"PARLEY_LOG_LEVEL=DEBUG", "PARLEY_EGRESS_ALLOW=" + s.hook}, s.env...))
	s.servers = append(s.servers, srv)
	return srv
}

// command runs parley and checks whether it succeeds.
func (s *spied) command(ok bool, stdin string, args ...string) {
	s.t.Helper()
	out, errs, err := s.run(stdin, args...)
	if (err == nil) != ok {
		s.t.Errorf("parley %s: %v\n%s", strings.Join(args, " "), err, errs)
	}
	fmt.Fprint(&s.said, out, errs)
}

// send sends a message, expects a status, and reads the whole response.
func (s *spied) send(srv *server, status int, body any) string {
	s.t.Helper()
	res, answer := s.do(s.t, s.messages(srv, body))
	if res.StatusCode != status {
		s.t.Errorf("%s %s, want %d", res.Status, answer, status)
	}
	return string(answer)
}

// sources returns all places that could contain a value.
func (s *spied) sources() []canary.Source {
	var logs []byte
	for _, srv := range s.servers {
		logs = append(logs, srv.said.bytes()...)
	}
	return append(canary.Server(s.db, s.dsn), canary.Bytes("service log", logs), canary.Bytes("answers", s.answers.heard.bytes()),
		canary.Bytes("commands", s.said.bytes()), canary.Bytes("callbacks", s.told.bytes()))
}

const spiedSkills = `---
name: %s
description: Does something with a subject.
interface:
  inputs:
    subject: {type: string, required: true}
    count: {type: integer}
    team: {type: enum, values: [sales, support]}
    day: {type: string, format: date}
---
%s
`

// TestSecretsAreNowhere sends values through skills, a secret request and the vault, in successes
// and failures, with a PostgreSQL and servers that log everything. Then it searches all output and
// data for the values.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs processes")
	s := newSpied(t)
	input, provided, set := canary.New(), canary.New(), canary.New()
	dir := t.TempDir()
	for name, instructions := range map[string]string{"report": "Write the report.", "failing": "@say I try.\n@error content_refused",
		"slow": "@text 200 deltas of 12 bytes at 100/s"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "SKILL.md"), fmt.Appendf(nil, spiedSkills, name, instructions), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.command(true, "", "skills", "push", dir, "--workspace", "w")
	s.command(true, set, "secrets", "set", "SET_KEY", "--workspace", "w", "--host", "api.example.com")
	s.command(true, set, "secrets", "set", "SET_KEY", "--workspace", "w")
	s.command(true, "", "secrets", "set", "ASKED_KEY", "--workspace", "w", "--host", "api.example.com", "--no-value")
	s.command(false, set, "secrets", "set", "OTHER_KEY", "--workspace", "w")
	s.command(false, set+"\t"+set, "secrets", "set", "SET_KEY", "--workspace", "w")
	s.command(true, "", "secrets", "list", "--workspace", "w", "--json")

	srv := s.skills(input)
	s.refused(srv, input)
	s.secret(srv, provided)
	for value, what := range map[string]string{input: "input", provided: "provided", set: "set", strings.SplitAfter(vaultKey,
		":")[1]: "master key", s.key[12:]: "API key"} {
		t.Logf("looking for %s", what)
		canary.Sweep(t, value, s.sources()...)
	}

	control := canary.New()
	r := s.messages(srv, map[string]any{"command": "@say " + control, "callback": s.hook, "stream": true})
	r.Header.Set("X-Request-Id", control)
	if res, answer := s.do(t, r); res.StatusCode != http.StatusOK {
		t.Errorf("%s %s", res.Status, answer)
	}
	wait.For(t, "the callback is told", func() bool { return strings.Count(string(s.told.bytes()), "turn.completed") == 2 })
	s.command(true, control, "wiki", "put", "wiki/control.md", "--workspace", "w")
	s.command(true, "", "wiki", "get", "wiki/control.md", "--workspace", "w")
	sources := s.sources()
	found := canary.Find(t, control, sources...)
	for _, src := range sources {
		if !slices.ContainsFunc(found, func(f canary.Finding) bool { return f.Source == src.Name }) {
			t.Errorf("the search finds nothing in %s", src.Name)
		}
	}
}

// skills runs skills with a value: in a stream, with a callback, in a turn that fails, and in one
// whose server is killed and that continues on another server, which is returned.
func (s *spied) skills(value string) *server {
	t := s.t
	t.Helper()
	srv := s.start()
	with := func(name string, more map[string]any) map[string]any {
		body := map[string]any{"skill": name, "input": map[string]any{"subject": value, "count": 3}, "secret_input": []string{"SET_KEY"}}
		for k, v := range more {
			body[k] = v
		}
		return body
	}
	if answer := s.send(srv, http.StatusOK, with("report", map[string]any{"caller_id": "anna"})); !strings.Contains(answer,
		"event: done") || strings.Contains(answer, "event: error") {
		t.Errorf("%s", answer)
	}
	s.send(srv, http.StatusAccepted, with("report", map[string]any{"callback": s.hook}))
	wait.For(t, "the callback is told", func() bool { return strings.Contains(string(s.told.bytes()), "turn.completed") })
	if answer := s.send(srv, http.StatusOK, with("failing", map[string]any{"stream": false})); !strings.Contains(answer,
		`"error":"content_refused"`) {
		t.Errorf("%s", answer)
	}

	first := s.start()
	var session, cursor string
	var frames []frame
	err := s.stream(t.Context(), s.messages(first, with("slow", nil)), func(f frame) bool {
		var open struct {
			SessionID string `json:"session_id"`
		}
		if f.Event == "open" && json.Unmarshal([]byte(f.Data), &open) == nil {
			session = open.SessionID
		}
		frames, cursor = append(frames, f), f.ID
		return len(frames) < 20
	})
	if err != nil {
		t.Fatal(err)
	}
	srv.kill() // either server may run it
	first.kill()
	again := s.start()
	rest, err := s.follow(t.Context(), session, cursor, nil, again)
	if got := text(append(frames, rest...)); err != nil || len(got) != 200*12 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	for _, path := range []string{"sessions", "sessions/" + session + "/messages", "callbacks"} {
		r, _ := http.NewRequest(http.MethodGet, again.url+"/api/v1/workspaces/w/"+path, nil)
		if res, body := s.do(t, r); res.StatusCode != http.StatusOK || path != "callbacks" && !strings.Contains(string(body),
			"/slow (subject, count)") {
			t.Errorf("%s: %s %s", path, res.Status, body)
		}
	}
	var left int
	if err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM turns WHERE prompt IS NOT NULL`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d prompts are left, %v", left, err)
	}
	return again
}

// refused sends a value in messages that are rejected.
func (s *spied) refused(srv *server, value string) {
	s.t.Helper()
	in := map[string]any{"subject": value}
	for code, body := range map[string]any{
		"INVALID_SKILL_INPUT": map[string]any{"skill": "report", "input": map[string]any{"subject": []string{value}, "count": value,
			"team": value, "day": value}},
		"UNKNOWN_SKILL":           map[string]any{"skill": "reprot", "input": in},
		"UNKNOWN_SECRET":          map[string]any{"skill": "report", "input": in, "secret_input": []string{"NO_KEY"}},
		"INVALID_RESPONSE_SCHEMA": map[string]any{"skill": "report", "input": in, "response_schema": map[string]any{"$ref": "#"}},
		"INVALID_CALLBACK_URL":    map[string]any{"skill": "report", "input": in, "callback": "http://elsewhere.example/"},
		"INVALID_REQUEST":         map[string]any{"skill": "report", "input": value, "command": "x"},
	} {
		if answer := s.send(srv, http.StatusBadRequest, body); !strings.Contains(answer, code) {
			s.t.Errorf("%s, want %s", answer, code)
		}
	}
	text, _ := json.Marshal(in)
	for _, body := range []string{`{"skill":"report","input":` + string(text), `{"skill":"report","input":` + string(text) + `,"input":` +
		string(text) + `}`, string(text) + string(text)} {
		r := s.messages(srv, nil)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		if res, answer := s.do(s.t, r); !strings.Contains(string(answer), "INVALID_JSON") {
			s.t.Errorf("%s %s", res.Status, answer)
		}
	}
}

// secret lets a turn request a credential and provides the value, after an invalid one.
func (s *spied) secret(srv *server, value string) {
	t := s.t
	t.Helper()
	var ask struct {
		URL string `json:"secret_url"`
	}
	var session, cursor string
	err := s.stream(t.Context(), s.messages(srv, map[string]any{
		"command":      `@call request_secret {"key_name":"ASKED_KEY","reason":"to look"}` + "\n@say Done.",
		"secret_input": []string{"SET_KEY"}}), func(f frame) bool {
		var open struct {
			SessionID string `json:"session_id"`
		}
		if f.Event == "open" && json.Unmarshal([]byte(f.Data), &open) == nil {
			session = open.SessionID
		}
		if cursor = f.ID; f.Event != "input_required" {
			return true
		}
		if err := json.Unmarshal([]byte(f.Data), &ask); err != nil {
			t.Errorf("%s: %v", f.Data, err)
		}
		return false
	})
	if err != nil || ask.URL == "" {
		t.Fatalf("%+v: %v", ask, err)
	}
	elsewhere := strings.Replace(ask.URL, "/approvals/", "/approvals/0", 1)
	text, _ := json.Marshal(value)
	for _, c := range []struct {
		url, body, key string
		status         int
	}{
		{ask.URL, `{"action":"provide","value":[` + string(text) + `]}`, "", 400},
		{ask.URL, `{"action":"provide","value":` + string(text) + `,"more":` + string(text) + `}`, "", 400},
		{ask.URL, `{"action":"skip","value":` + string(text) + `}`, "", 400},
		{ask.URL, `{"action":` + string(text) + `,"value":` + string(text) + `}`, "", 400},
		{ask.URL, `{"action":"provide","value":` + string(text[:len(text)-1]) + `\t` + string(text[1:]) + `}`, "", 400},
		{ask.URL, `{"action":"provide","value":` + string(text), "", 400},
		{elsewhere, `{"action":"provide","value":` + string(text) + `}`, "", 404},
		{ask.URL, `{"action":"provide","value":` + string(text) + `}`, "Bearer nobody", 401},
		{ask.URL, `{"action":"provide","value":` + string(text) + `}`, "", 200},
		{ask.URL, `{"action":"provide","value":` + string(text) + `}`, "", 200},
		{ask.URL, `{"action":"skip"}`, "", 409},
	} {
		r := srv.post(c.url, nil)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(c.body)), int64(len(c.body))
		if r.Header.Set("Idempotency-Key", "once"); c.key != "" {
			r.Header.Set("Authorization", c.key)
		}
		if c.status == 409 {
			r.Header.Del("Idempotency-Key")
		}
		if res, body := s.do(t, r); res.StatusCode != c.status {
			t.Errorf("%s %s, want %d", res.Status, body, c.status)
		}
	}
	rest, err := s.follow(t.Context(), session, cursor, nil, srv)
	if err != nil || !strings.Contains(fmt.Sprint(rest), "ASKED_KEY is in the vault now") {
		t.Errorf("%v, %v", rest, err)
	}
	var version int
	if err := s.pool.QueryRow(t.Context(), `SELECT version FROM credentials WHERE name = 'ASKED_KEY' AND value IS NOT NULL`).Scan(
		&version); err != nil || version != 2 {
		t.Errorf("version %d, %v", version, err)
	}
}
