package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/apikey"
)

// bodies are requests that would do something, by operation. A new operation with a
// body needs one.
var bodies = map[string]string{
	"sendMessage":    `{"command":"@text 1 delta","session_id":"{object}"}`,
	"decideApproval": `{"decision":"allow"}`,
	"answerSecret":   `{"action":"skip"}`,
}

// operations lists what the document protects, with paths of the demo workspace and
// the id of an object. A new operation is in every test below without being named.
func (s *service) operations(t *testing.T, ref, object string) (ops []call, scopes []apikey.Scope) {
	t.Helper()
	for path, item := range document(t, s).Paths.Map() {
		for method, op := range item.Operations() {
			scope := apikey.Scope(op.Extensions["x-scope"].(string))
			if scope == "none" {
				continue
			}
			path, filled := strings.Replace(path, "{id}", ref, 1), false
			for _, name := range []string{"{sessionId}", "{approvalId}"} {
				if strings.Contains(path, name) {
					path, filled = strings.Replace(path, name, object, 1), true
				}
			}
			if strings.Contains(path, "{") && !filled {
				t.Fatalf("%s: which object is this?", path)
			}
			c := call{method: method, path: path}
			if op.RequestBody != nil {
				body, ok := bodies[op.OperationID]
				if !ok {
					t.Fatalf("%s has no body to try", op.OperationID)
				}
				c.body = strings.Replace(body, "{object}", object, 1)
			}
			ops, scopes = append(ops, c), append(scopes, scope)
		}
	}
	if len(ops) < 5 {
		t.Fatalf("only %d operations", len(ops))
	}
	return ops, scopes
}

func TestOnlyAGoodKeyGetsIn(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	good := s.key
	revoked := s.issue(t, s.workspace, apikey.All...)
	if err := s.keys.Revoke(t.Context(), s.workspace.ID, revoked[4:12]); err != nil {
		t.Fatal(err)
	}
	const missing, invalid = `Bearer realm="parley"`, `Bearer realm="parley", error="invalid_token"`
	ops, _ := s.operations(t, "demo", uuid.NewString())
	for _, op := range ops {
		for name, c := range map[string]struct {
			header    []string
			code      string
			challenge string
		}{
			"no key":          {[]string{"Authorization", ""}, "MISSING_API_KEY", missing},
			"another scheme":  {[]string{"Authorization", "Basic dXNlcjpwYXNz"}, "INVALID_API_KEY", invalid},
			"the scheme only": {[]string{"Authorization", "Bearer"}, "INVALID_API_KEY", invalid},
			"no scheme":       {[]string{"Authorization", good}, "INVALID_API_KEY", invalid},
			"nonsense":        {[]string{"Authorization", "Bearer nonsense"}, "INVALID_API_KEY", invalid},
			"a typo":          {[]string{"Authorization", "Bearer " + strings.Replace(good, good[20:22], "zz", 1)}, "INVALID_API_KEY", invalid},
			"a revoked key":   {[]string{"Authorization", "Bearer " + revoked}, "INVALID_API_KEY", invalid},
			"much too long":   {[]string{"Authorization", "Bearer " + strings.Repeat("x", 9000)}, "INVALID_API_KEY", invalid},
		} {
			op.header = c.header
			r := s.get(t, op)
			if r.status != 401 || r.Error.Code != c.code || r.Error.Type != "authentication_error" || r.header.Get("WWW-Authenticate") != c.challenge {
				t.Errorf("%s %s, %s: %d %s, %q", op.method, op.path, name, r.status, r.text, r.header.Get("WWW-Authenticate"))
			}
		}
	}
	if r := s.get(t, call{path: "sessions", header: []string{"Authorization", "bEaReR   " + good}}); r.status != 200 {
		t.Errorf("another spelling of the scheme: %d", r.status)
	}
	two := s.request(t, call{path: "sessions"})
	two.Header.Add("Authorization", "Bearer "+good)
	res, err := s.client.Do(two)
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close(); res.StatusCode != 401 {
		t.Errorf("two keys: %d", res.StatusCode)
	}
}

// Every operation, every key with a single scope: the one it needs opens, and so do
// those that include it; the others get 403 and change nothing.
func TestScopes(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	keys := make(map[apikey.Scope]string)
	for _, scope := range apikey.All {
		keys[scope] = s.issue(t, s.workspace, scope)
	}
	ops, scopes := s.operations(t, "demo", uuid.NewString())
	for i, op := range ops {
		for scope, key := range keys {
			op.key = key
			r := s.get(t, op)
			if scope.Includes(scopes[i]) {
				if r.status == 403 || r.status == 401 {
					t.Errorf("%s %s with %s: %d", op.method, op.path, scope, r.status)
				}
				continue
			}
			want := fmt.Sprintf(`Bearer error="insufficient_scope", scope="%s"`, scopes[i])
			if r.status != 403 || r.Error.Code != "INSUFFICIENT_SCOPE" || r.Error.RequiredScope != string(scopes[i]) || r.header.Get("WWW-Authenticate") != want ||
				r.header.Get("X-Key-Scopes") != string(scope) || r.header.Get("X-Accepted-Scopes") != string(scopes[i]) {
				t.Errorf("%s %s with %s: %d %s %v", op.method, op.path, scope, r.status, r.text, r.header)
			}
		}
	}
	denied := call{method: "POST", path: "messages", body: `{"command":"@text 1 delta"}`, key: keys[apikey.SessionsRead]}
	if r := s.get(t, denied); r.status != 403 {
		t.Errorf("%d", r.status)
	}
	if list := s.get(t, call{path: "sessions"}); string(list.Data) != "[]" {
		t.Errorf("a refused message left %s", list.Data)
	}
}

// An object of another workspace answers like one that does not exist: status, code
// and shape; and nothing happens to it.
func TestWorkspacesAreApart(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	other, foreign := s.another(t)
	st := s.say(t, held)
	id := sessionOf(t, st.until("open")[0])
	<-s.gate.entered

	plain := func(r reply) string { // what differs between any two answers
		return strings.NewReplacer(r.RequestID, "", r.header.Get("X-Request-Id"), "", id, "").Replace(fmt.Sprint(r.status, r.text))
	}
	nothing := uuid.NewString()
	for _, ref := range []string{"demo", s.workspace.ID.String(), strings.ToUpper(s.workspace.ID.String())} {
		there, _ := s.operations(t, ref, id)
		for _, op := range there {
			op.key = foreign
			r := s.get(t, op)
			op.path = strings.Replace(op.path, ref, "no-such-workspace", 1)
			if none := s.get(t, op); r.status != 404 || r.Error.Code != "WORKSPACE_NOT_FOUND" || plain(r) != plain(none) {
				t.Errorf("%s: %s, but of nothing: %s", op.path, plain(r), plain(none))
			}
		}
	}
	for _, ref := range []string{"another", other.ID.String()} {
		there, _ := s.operations(t, ref, id)
		for _, op := range there {
			if !strings.Contains(op.path+op.body, id) {
				continue // lists what is its own
			}
			op.key = foreign
			r := s.get(t, op)
			op.path, op.body = strings.Replace(op.path, id, nothing, 1), strings.Replace(op.body, id, nothing, 1)
			none := s.get(t, op)
			if r.status != 404 || !strings.HasSuffix(r.Error.Code, "_NOT_FOUND") || r.Error.Code == "WORKSPACE_NOT_FOUND" || plain(r) != strings.ReplaceAll(plain(none), nothing, "") {
				t.Errorf("%s: %s, but of nothing: %s", op.path, plain(r), plain(none))
			}
		}
	}
	if r := s.get(t, call{path: "/api/v1/workspaces/another/sessions", key: foreign}); string(r.Data) != "[]" {
		t.Errorf("the other workspace lists %s", r.Data)
	}
	s.gate.leave <- struct{}{}
	if got := names(st.rest()); got != "text tool_use tool_result text usage done" {
		t.Errorf("the turn was touched: %s", got)
	}
}

func TestOneCallerInTwoWorkspacesIsTwo(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	_, foreign := s.another(t)
	message := `{"command":"@text 1 delta","caller_id":"anna"}`
	here := s.open(t, call{method: "POST", path: "messages", body: message}).rest()
	there := s.open(t, call{method: "POST", path: "/api/v1/workspaces/another/messages", body: message, key: foreign}).rest()
	again := s.open(t, call{method: "POST", path: "messages", body: message}).rest()
	if a, b, c := sessionOf(t, here[0]), sessionOf(t, there[0]), sessionOf(t, again[0]); a == b || a != c {
		t.Errorf("sessions %s, %s, %s", a, b, c)
	}
}

func TestLoopbackKeyDoesNotPassAProxy(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	_, key, err := s.keys.Create(t.Context(), apikey.Grant{Workspace: s.workspace.ID, Name: "dev", Scopes: apikey.All, Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	if r := s.get(t, call{path: "sessions", key: key}); r.status != 200 {
		t.Errorf("from this machine: %d", r.status)
	}
	for _, header := range []string{"X-Forwarded-For", "Forwarded", "X-Real-IP", "Via", "X-Forwarded-Host"} {
		if r := s.get(t, call{path: "sessions", key: key, header: []string{header, "127.0.0.1"}}); r.status != 401 || r.Error.Code != "INVALID_API_KEY" {
			t.Errorf("with %s: %d", header, r.status)
		}
	}
}

// Authentication comes first of all that concerns an operation, then the workspace,
// then the scope, then the request.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	reader := s.issue(t, s.workspace, apikey.SessionsRead)
	broken := call{method: "POST", path: "messages", body: "{", header: []string{"Content-Type", "text/plain", "Accept", "image/png"}}
	for _, step := range []struct {
		status int
		mend   func(*call)
	}{
		{401, func(c *call) { c.key, c.path = "nonsense", "/api/v1/workspaces/nowhere/messages" }},
		{404, func(c *call) { c.key = reader }},
		{403, func(c *call) { c.path = "messages" }},
		{406, func(c *call) { c.key = "" }},
		{415, func(c *call) { c.header = c.header[:2] }},
		{400, func(c *call) { c.header = nil }},
		{404, func(c *call) { c.body = `{"command":"x","session_id":"` + uuid.NewString() + `"}` }},
	} {
		step.mend(&broken)
		if r := s.get(t, broken); r.status != step.status {
			t.Errorf("%d, want %d: %s", r.status, step.status, r.text)
		}
	}
	if r := s.get(t, call{method: http.MethodGet, path: "sessions/nonsense/events?last_event_id=x"}); r.status != 400 {
		t.Errorf("a bad cursor for no session: %d", r.status)
	}
}
