package rest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/apicheck"
)

// browserToken is a new browser token as the API shows it.
type browserToken struct {
	Token, User string
	TokenID     string    `json:"token_id"`
	SessionID   string    `json:"session_id"`
	CreatedAt   time.Time `json:"created_at"`
	ExpiresAt   time.Time `json:"expires_at"`
	CreatedBy   string    `json:"created_by"`
}

// token makes a browser token with a key, at "tokens" or "sessions/…/tokens".
func (s *service) token(t testing.TB, key, path, body string) (made browserToken) {
	t.Helper()
	r := s.get(t, call{method: "POST", path: path, key: key, body: body})
	if r.status != 201 {
		t.Fatalf("%d %s", r.status, r.text)
	}
	decode(t, r.Data, &made)
	return made
}

func (s *service) post(t testing.TB, key, path, body string, header ...string) reply {
	t.Helper()
	return s.get(t, call{method: "POST", path: path, key: key, body: body, header: header})
}

// TestBrowserTokensStayInTheirLimit checks the tokens of a session and of a user: they use their
// own sessions, every other session is missing, and every other operation is forbidden.
func TestBrowserTokensStayInTheirLimit(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(time.Hour))
	key := s.Issue(t, s.Workspace, apikey.Usual...)
	ask := func(user string) question {
		return s.open(t, call{method: "POST", path: "messages", key: key, body: body(t, "@call gate {}\n@say Done.",
			`"user":"`+user+`"`)}).asked()
	}
	sessionFor := func(q question) string {
		var a struct {
			SessionID string `json:"session_id"`
		}
		decode(t, s.get(t, call{path: "approvals/" + q.ApprovalID}).Data, &a)
		return a.SessionID
	}
	anna, bob := ask("anna"), ask("bob")
	annas, bobs := sessionFor(anna), sessionFor(bob)
	ofSession := s.token(t, key, "sessions/"+annas+"/tokens", `{}`)
	ofUser := s.token(t, key, "tokens", `{"user":"anna","expires_in":60}`)
	if life := ofSession.ExpiresAt.Sub(ofSession.CreatedAt); life != 15*time.Minute || ofSession.SessionID != annas ||
		ofSession.CreatedBy != key[4:12] {
		t.Errorf("%+v lives for %s", ofSession, life)
	}
	if life := ofUser.ExpiresAt.Sub(ofUser.CreatedAt); life != time.Minute || ofUser.User != "anna" || ofUser.SessionID != "" {
		t.Errorf("%+v lives for %s", ofUser, life)
	}
	open := make(map[string]bool)
	for _, item := range s.client.Transport.(*apicheck.Transport).Doc.Paths.Map() {
		for _, op := range item.Operations() {
			open[op.OperationID] = op.Extensions["x-browser-token"] == true
		}
	}
	about := nothing()
	for _, token := range []browserToken{ofSession, ofUser} {
		for _, op := range s.operations(t) {
			c := op.call("demo", about)
			if c.key = token.Token; open[op.id] {
				continue
			}
			want := "INSUFFICIENT_SCOPE"
			if (apikey.Scopes{apikey.Chat, apikey.SessionsRead}).Allows(op.scope) {
				want = "TOKEN_RESTRICTED"
			}
			if r := s.get(t, c); r.status != 403 || !strings.Contains(r.text, want) {
				t.Errorf("%s: %d %s, want %s", op, r.status, r.text, want)
			}
		}
		for _, path := range []string{"", "/messages", "/feedback"} {
			if r := s.get(t, call{path: "sessions/" + annas + path, key: token.Token}); r.status != 200 {
				t.Errorf("own session%s: %d %s", path, r.status, r.text)
			}
			if r := s.get(t, call{path: "sessions/" + bobs + path, key: token.Token}); r.status != 404 || r.Error.Code != "SESSION_NOT_FOUND" {
				t.Errorf("another session%s: %d %s", path, r.status, r.text)
			}
		}
		for path, body := range map[string]string{
			"sessions/" + bobs + "/cancel": "", "sessions/" + bobs + "/fork": "{}",
			"sessions/" + bobs + "/tool-results": `{"results":[{"tool_use_id":"call_1","output":"x"}]}`,
			"messages":                           body(t, "x", `"session_id":"`+bobs+`"`), "approvals/" + bob.ApprovalID + "/decide": allow,
		} {
			if path = "/api/v1/workspaces/demo/" + path; strings.Contains(path, "decide") {
				path = strings.Replace(path, "/v1", "", 1)
			}
			if r := s.post(t, token.Token, path, body); r.status != 404 || r.Error.Code == "WORKSPACE_NOT_FOUND" || r.Error.Code == "NOT_FOUND" {
				t.Errorf("%s: %d %s", path, r.status, r.text)
			}
		}
		if r := s.post(t, token.Token, "sessions/"+annas+"/fork", "{}"); token.User == "" && (r.status != 403 ||
			r.Error.Code != "TOKEN_RESTRICTED") {
			t.Errorf("a fork with a token for one session: %d %s", r.status, r.text)
		}
		if r := s.get(t, call{path: "sessions/" + bobs + "/events", key: token.Token}); r.status != 404 {
			t.Errorf("another stream: %d", r.status)
		}
		if r := s.get(t, call{path: "approvals/" + bob.ApprovalID, key: token.Token}); r.status != 404 || r.Error.Code != "APPROVAL_NOT_FOUND" {
			t.Errorf("another approval: %d %s", r.status, r.text)
		}
		for field, value := range map[string]string{
			"caller_id": `"c"`, "callback": `"https://listen.invalid/"`, "secret_input": `["A"]`, "agent": `"other"`, "agent_version": `1`,
			"user": `"bob"`,
		} {
			if r := s.post(t, token.Token, "messages", body(t, "x", `"`+field+`":`+value)); r.status != 403 ||
				r.Error.Code != "TOKEN_RESTRICTED" || r.Error.Param != field {
				t.Errorf("%s: %d %s", field, r.status, r.text)
			}
		}
		for _, field := range []string{`"allowlist_pattern":"gate"`, `"actor":"bob"`} {
			if r := s.post(t, token.Token, anna.DecideURL, `{"decision":"allow",`+field+`}`); r.status != 403 || r.Error.Code != "TOKEN_RESTRICTED" {
				t.Errorf("%s: %d %s", field, r.status, r.text)
			}
		}
	}
	if r := s.get(t, call{path: "sessions", key: ofSession.Token}); r.status != 403 {
		t.Errorf("a list with the token of one session: %d %s", r.status, r.text)
	}
	for _, query := range []string{"sessions", "sessions?user=anna"} {
		if r := s.get(t, call{path: query, key: ofUser.Token}); r.status != 200 || strings.Count(r.text, `"session_id"`) != 1 ||
			!strings.Contains(r.text, annas) {
			t.Errorf("%s: %d %s", query, r.status, r.text)
		}
	}
	if r := s.get(t, call{path: "sessions?user=bob", key: ofUser.Token}); r.status != 403 {
		t.Errorf("a list of another user: %d %s", r.status, r.text)
	}

	require(t, s, workspace.Change{SeparateApprover: new(true)})
	if r := s.post(t, ofUser.Token, anna.DecideURL, allow); r.status != 403 || r.Error.Code != "APPROVER_IS_SENDER" {
		t.Errorf("a token of the sending key: %d %s", r.status, r.text)
	}
	require(t, s, workspace.Change{SeparateApprover: new(false)})
	s.Gate.Leave <- struct{}{}
	if r := s.post(t, ofUser.Token, anna.DecideURL, allow); r.status != 200 {
		t.Errorf("the approval of its own session: %d %s", r.status, r.text)
	}
	s.open(t, call{path: "sessions/" + annas + "/events", key: ofSession.Token}).rest()
	if r := s.post(t, ofSession.Token, "messages", body(t, "@say Again.", `"stream":false`)); r.status != 200 ||
		!strings.Contains(r.text, annas) {
		t.Errorf("a message to its own session: %d %s", r.status, r.text)
	}
	s.tokensRepeat(t, key, ofUser)
}

// tokensRepeat checks that a message is repeated to the tokens of its user only.
func (s *service) tokensRepeat(t *testing.T, key string, ofUser browserToken) {
	const once = "Idempotency-Key"
	message := body(t, "@say Private.", `"stream":false`)
	first := s.post(t, ofUser.Token, "messages", message, once, "one")
	var answer struct {
		SessionID string `json:"session_id"`
	}
	decode(t, []byte(first.text), &answer)
	if got := s.session(t, answer.SessionID); first.status != 200 || got.User == nil || *got.User != "anna" {
		t.Fatalf("%d %s: %+v", first.status, first.text, got)
	}
	next := s.token(t, key, "tokens", `{"user":"anna"}`)
	if r := s.post(t, next.Token, "messages", message, once, "one"); r.text != first.text || r.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the next token of the user: %d %s", r.status, r.text)
	}
	other := s.token(t, key, "tokens", `{"user":"bob"}`)
	for _, header := range [][]string{{once, "one"}, {"Last-Event-ID", "1"}} {
		if r := s.post(t, other.Token, "messages", message, header...); r.status != 422 && r.status != 400 ||
			strings.Contains(r.text, "Private") {
			t.Errorf("the token of another user, with %s: %d %s", header[0], r.status, r.text)
		}
	}
	if owns, err := s.Sessions.IsOwner(t.Context(), s.Workspace.ID, uuid.MustParse(answer.SessionID), key[4:12]); err != nil || !owns {
		t.Errorf("the key that made the token does not own its session: %v", err)
	}
}

// TestBrowserTokensEndWithTheirKey checks that a token has no right that its key lacks, and that
// its streams close when the token or the key is revoked.
func TestBrowserTokensEndWithTheirKey(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for body, field := range map[string]string{`{"user":"a","expires_in":3601}`: "/expires_in", `{"user":""}`: "/user", `{}`: "/user",
		`{"user":"a","agent":"none"}`: "", `{"user":"a","scopes":[]}`: "/scopes"} {
		if r := s.post(t, "", "tokens", body); r.status != 400 || field != "" && r.Error.Violations[0].Param != field {
			t.Errorf("%s: %d %s", body, r.status, r.text)
		}
	}
	if r := s.get(t, call{path: "sessions", key: s.token(t, s.Issue(t, s.Workspace, apikey.Chat), "tokens",
		`{"user":"anna"}`).Token}); r.status != 403 || r.Error.RequiredScope != "sessions:read" {
		t.Errorf("the token of a key that may not read: %d %s", r.status, r.text)
	}
	key := s.Issue(t, s.Workspace, apikey.Chat, apikey.SessionsRead)
	revoked, kept := s.token(t, key, "tokens", `{"user":"anna"}`), s.token(t, key, "tokens", `{"user":"anna"}`)
	reading := func(token string) *stream {
		st := s.open(t, call{method: "POST", path: "messages", body: body(t, held), key: token})
		st.until("tool_use")
		s.Gate.Await(t)
		return st
	}
	first, second := reading(revoked.Token), reading(kept.Token)
	if r := s.get(t, call{method: "DELETE", path: "tokens/" + revoked.TokenID, key: s.Issue(t, s.Workspace,
		apikey.Chat)}); r.status != 404 || r.Error.Code != "OBJECT_NOT_FOUND" {
		t.Errorf("another key: %d %s", r.status, r.text)
	}
	if r := s.get(t, call{method: "DELETE", path: "tokens/" + revoked.TokenID, key: key}); r.status != 200 {
		t.Errorf("%d %s", r.status, r.text)
	}
	if rest := first.rest(); len(rest) > 0 {
		t.Errorf("the stream of a revoked token continued with %s", names(rest))
	}
	for by, want := range map[string]string{key: kept.TokenID, s.Key: kept.TokenID, s.Issue(t, s.Workspace, apikey.Chat): ""} {
		r := s.get(t, call{path: "tokens?limit=1&user=anna", key: by})
		if r.status != 200 || strings.Count(r.text, "token_id") != len(want)/8 || !strings.Contains(r.text, want) ||
			strings.Contains(r.text, "brtok_") {
			t.Errorf("tokens of %s: %d %s", by[4:12], r.status, r.text)
		}
	}
	var keys []struct {
		ID string `json:"key_id"`
	}
	decode(t, s.get(t, call{path: "keys?limit=100"}).Data, &keys)
	for _, k := range keys {
		if k.ID == kept.TokenID {
			t.Error("a browser token is among the keys")
		}
	}
	for _, c := range []call{{method: "DELETE", path: "keys/" + kept.TokenID}, {method: "PATCH", path: "keys/" + kept.TokenID,
		body: `{"expires_at":null}`},
		{method: "POST", path: "keys/" + kept.TokenID + "/roll", body: `{}`}} {
		if r := s.get(t, c); r.status != 404 {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.status, r.text)
		}
	}
	if err := s.Keys.Revoke(t.Context(), s.Workspace.ID, key[4:12]); err != nil {
		t.Fatal(err)
	}
	if rest := second.rest(); len(rest) > 0 {
		t.Errorf("the stream of a token whose key is revoked continued with %s", names(rest))
	}
	if r := s.get(t, call{path: "sessions", key: kept.Token}); r.status != 401 || r.Error.Code != "INVALID_API_KEY" {
		t.Errorf("the token of a revoked key: %d %s", r.status, r.text)
	}
	for range 2 {
		s.Gate.Leave <- struct{}{}
	}
	var changes int
	err := s.pool.QueryRow(t.Context(),
		`SELECT count(*) FROM admin_log WHERE object = 'api_keys' AND (object_id = ANY ($1) OR after ->> 'only_user' = 'anna')`,
		[]string{revoked.TokenID, kept.TokenID}).Scan(&changes)
	if err != nil || changes != 0 {
		t.Errorf("%d changes of tokens in the log, which would keep their user: %v", changes, err)
	}
}

// TestListedOriginsMayCallTheAPI checks what a browser asks before it lets a page of another origin
// send a request and read its response.
func TestListedOriginsMayCallTheAPI(t *testing.T) {
	t.Parallel()
	const origin = "https://app.example"
	s := start(t, func(c *server.Config) { c.CORSOrigins = []string{origin, "http://localhost:3000"} })
	preflight := []string{"Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers",
		"authorization,content-type,last-event-id"}
	r := s.get(t, call{method: http.MethodOptions, path: "messages", key: "-", header: preflight})
	for name, want := range map[string]string{"Access-Control-Allow-Origin": origin, "Access-Control-Allow-Methods": "OPTIONS, POST",
		"Access-Control-Allow-Credentials": "", "Vary": "Origin"} {
		if got := r.header.Get(name); r.status != 204 || got != want {
			t.Errorf("%d, %s: %q, want %q", r.status, name, got, want)
		}
	}
	for _, name := range []string{"Authorization", "Content-Type", "Last-Event-ID", "Idempotency-Key"} {
		if !strings.Contains(r.header.Get("Access-Control-Allow-Headers"), name) {
			t.Errorf("%s may not be sent", name)
		}
	}
	for _, c := range []call{{path: "sessions"}, {path: "sessions", key: "-"}, {path: "/api/v1/openapi"}, {method: "PUT", path: "sessions"}} {
		c.header = []string{"Origin", origin}
		r := s.get(t, c)
		if r.header.Get("Access-Control-Allow-Origin") != origin || !strings.Contains(r.header.Get("Access-Control-Expose-Headers"),
			"Retry-After") {
			t.Errorf("%s %s: %d %v", c.method, c.path, r.status, r.header)
		}
		for _, other := range []string{"https://evil.example", "https://app.example.evil.example", "http://app.example", "null",
			"https://app.example:8443"} {
			c.header[1] = other
			if r := s.get(t, c); r.header.Get("Access-Control-Allow-Origin") != "" || r.header.Get("Vary") != "Origin" {
				t.Errorf("%s may read %s %s: %v", other, c.method, c.path, r.header)
			}
		}
	}
	off := start(t, nil)
	if r := off.get(t, call{method: http.MethodOptions, path: "messages", key: "-",
		header: preflight}); r.header.Get("Access-Control-Allow-Origin") != "" || r.header.Get("Vary") != "" {
		t.Errorf("without listed origins: %v", r.header)
	}
}
