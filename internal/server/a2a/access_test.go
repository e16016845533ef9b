package a2a_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server/a2a"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/workspace"
)

// TestWhatMayNotComeInIsRefusedInTheEnvelope checks that errors before the JSON-RPC layer have the
// envelope and the order of the HTTP API.
func TestWhatMayNotComeInIsRefusedInTheEnvelope(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	_, legacy, err := s.Keys.CreateWebhookToken(t.Context(), s.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	request := `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}`
	for _, test := range []struct {
		method, path, key, contentType, body string
		status                               int
		code                                 string
	}{
		{"POST", a2a.Path, "", "application/json", request, 401, "MISSING_API_KEY"},
		{"POST", a2a.Path, "prl_nonsense", "application/json", request, 401, "INVALID_API_KEY"},
		{"POST", a2a.Path, legacy, "application/json", request, 403, "INSUFFICIENT_SCOPE"},
		{"POST", a2a.Path, legacy, "text/plain", request, 403, "INSUFFICIENT_SCOPE"},
		{"POST", a2a.Path, s.key, "text/plain", request, 415, "UNSUPPORTED_MEDIA_TYPE"},
		{"POST", a2a.Path, s.key, "application/json", strings.Repeat(" ", 1<<20) + request, 413, "PAYLOAD_TOO_LARGE"},
		{"GET", a2a.Path, s.key, "", "", 405, "METHOD_NOT_ALLOWED"},
		{"DELETE", a2a.Path, "", "", "", 405, "METHOD_NOT_ALLOWED"},
		{"POST", a2a.CardPath, "", "", "", 405, "METHOD_NOT_ALLOWED"},
		{"GET", a2a.CardPath, "prl_nonsense", "", "", 401, "INVALID_API_KEY"},
		{"GET", a2a.CardPath, legacy, "", "", 403, "INSUFFICIENT_SCOPE"},
	} {
		r, _ := http.NewRequestWithContext(t.Context(), test.method, s.URL+test.path, strings.NewReader(test.body))
		if test.key != "" {
			r.Header.Set("Authorization", "Bearer "+test.key)
		}
		r.Header.Set("Content-Type", test.contentType)
		res, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		var got struct {
			Error struct {
				Code  string
				Scope string `json:"required_scope"`
			}
			RequestID string `json:"request_id"`
		}
		if json.Unmarshal(text, &got) != nil || res.StatusCode != test.status || got.Error.Code != test.code || got.RequestID == "" ||
			res.Header.Get("X-Request-Id") != got.RequestID {
			t.Errorf("%s %s with %q: %d %s", test.method, test.path, test.key, res.StatusCode, text)
		}
		if test.status == 401 && res.Header.Get("WWW-Authenticate") == "" || test.status == 403 && got.Error.Scope != "a2a" ||
			test.status == 405 && res.Header.Get("Allow") == "" {
			t.Errorf("%s %s: %v %s", test.method, test.path, res.Header, text)
		}
	}
}

// TestTheScopeIsA2A tries each scope alone: only a2a allows these methods.
func TestTheScopeIsA2A(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, scope := range apikey.All {
		c := s.speaks(t, "1.0").by(s.Issue(t, s.Workspace, scope))
		res := c.post(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":`+c.params(unique(), text("@say Hi."), "")+`}`)
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if opened := res.StatusCode == 200 && strings.Contains(string(text), "TASK_STATE_COMPLETED"); opened != (scope == apikey.A2A) ||
			!opened && res.StatusCode != 403 {
			t.Errorf("%s: %d %s", scope, res.StatusCode, text)
		}
	}
	var turns int
	if err := s.Pool.QueryRow(t.Context(), `SELECT count(*) FROM turns`).Scan(&turns); err != nil || turns != 1 {
		t.Errorf("%d turns %v", turns, err)
	}
}

// TestWorkspacesAreApart checks in every method that another workspace's task gets the same
// response as a missing one, and is not changed.
func TestWorkspacesAreApart(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	_, foreign := s.Another(t)
	mine := s.speaks(t, "1.0").say(asking)
	other := "0197a0b4-7c3e-7cc0-8a3a-2f6f0f1b7f10"
	for _, v := range []string{"1.0", "0.3"} {
		c := s.speaks(t, v).by(foreign)
		methods := map[string]string{
			c.name("GetTask", "tasks/get"):                 `{"id":%q}`,
			c.name("CancelTask", "tasks/cancel"):           `{"id":%q}`,
			c.name("SubscribeToTask", "tasks/resubscribe"): `{"id":%q}`,
			c.name("CreateTaskPushNotificationConfig",
				"tasks/pushNotificationConfig/set"): `{"taskId":%q,"url":"http://hook.example/","pushNotificationConfig":{"url":"http://hook.example/"}}`,
			c.name("GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get"):    c.name(`{"taskId":%q,"id":"c"}`, `{"id":%q}`),
			c.name("ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list"): c.name(`{"taskId":%q}`, `{"id":%q}`),
			c.name("DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete"): c.name(`{"taskId":%q,"id":"c"}`,
				`{"id":%q,"pushNotificationConfigId":"c"}`),
			c.name("SendMessage", "message/send"): c.params("foreign",
				data(`{"decision":"allow"}`), "", `"taskId":%q`),
			c.name("SendStreamingMessage", "message/stream"): c.params("foreign2",
				data(`{"decision":"allow"}`), "", `"taskId":%q`),
			c.name("SendMessage", "message/send") + " ": c.params("foreign3", text("@say Hi."), "",
				`"contextId":%q`),
		}
		for method, params := range methods {
			code, theirs, none := -32001, mine.ID, other
			if strings.Contains(params, "contextId") {
				code, theirs = -32602, mine.ContextID
			}
			method = strings.TrimSpace(method)
			one := c.refused(code, method, fmt.Sprintf(params, theirs))
			two := c.refused(code, method, fmt.Sprintf(params, none))
			if a, b := strings.ReplaceAll(one.Message+string(one.Data), theirs, ""), strings.ReplaceAll(two.Message+string(two.Data), none,
				""); a != b {
				t.Errorf("%s: %s\n%s", method, a, b)
			}
		}
	}
	if list := s.speaks(t, "1.0").by(foreign).ask("ListTasks", `{}`); !strings.Contains(string(list), `"totalSize":0`) {
		t.Errorf("%s", list)
	}
	if list := s.speaks(t, "1.0").by(foreign).ask("ListTasks", fmt.Sprintf(`{"contextId":%q}`,
		mine.ContextID)); !strings.Contains(string(list), `"totalSize":0`) {
		t.Errorf("%s", list)
	}
	if now := s.speaks(t, "1.0").get(mine.ID); now.state() != "TASK_STATE_INPUT_REQUIRED" {
		t.Errorf("%+v", now)
	}
	// The same messageId in two workspaces is two messages.
	params := s.speaks(t, "1.0").params("same", text("@say Hi."), "")
	one, two := s.speaks(t, "1.0"), s.speaks(t, "1.0").by(foreign)
	if a, b := one.read(one.ask("SendMessage", params)), two.read(two.ask("SendMessage", params)); a.ID == b.ID || a.ContextID == b.ContextID {
		t.Errorf("%+v %+v", a, b)
	}
}

func TestLimitsAreThoseOfTheKey(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if _, err := s.Workspaces.Update(t.Context(), s.Workspace.ID, workspace.Change{MessagesPerMinute: new(2),
		OpenStreams: new(1)}); err != nil {
		t.Fatal(err)
	}
	c := s.speaks(t, "1.0")
	open := c.stream(held)
	open.until("WORKING")
	s.Gate.Await(t)
	if e := c.refused(-32000, "SendMessage", c.params(unique(), text("@say Hi."), "")); !strings.Contains(string(e.Data),
		"CONCURRENCY_LIMIT") || !strings.Contains(string(e.Data), "RetryInfo") {
		t.Errorf("%s", e.Data)
	}
	c.ask("SendMessage", c.params(unique(), text("@say Hi."), c.atOnce()))
	if e := c.refused(-32000, "SendMessage", c.params(unique(), text("@say Hi."), c.atOnce())); !strings.Contains(string(e.Data),
		"RATE_LIMITED") {
		t.Errorf("%s", e.Data)
	}
	s.Gate.Leave <- struct{}{}
	open.rest()
}

// TestARevokedKeyLosesItsStream checks that revoking a key closes its stream and that the task
// continues.
func TestARevokedKeyLosesItsStream(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	key, secret, err := s.Keys.Create(t.Context(), apikey.Grant{Workspace: s.Workspace.ID, Name: "short", Scopes: []apikey.Scope{apikey.A2A}})
	if err != nil {
		t.Fatal(err)
	}
	st := s.speaks(t, "1.0").by(secret).stream(held)
	id := st.until("WORKING")[0].task.ID
	s.Gate.Await(t)
	if err := s.Keys.Revoke(t.Context(), s.Workspace.ID, key.ID); err != nil {
		t.Fatal(err)
	}
	if frames := st.rest(); strings.Contains(outline(frames), "COMPLETED") || !st.cut {
		t.Errorf("cut %v: %s", st.cut, outline(frames))
	}
	back := s.speaks(t, "1.0").resume(id, "")
	s.Gate.Leave <- struct{}{}
	if frames := back.rest(); !strings.HasSuffix(outline(frames), "COMPLETED") {
		t.Errorf("%s", outline(frames))
	}
}

// TestAnErasedTaskSaysNothing checks that the task of an erased session is still returned, without
// its content.
func TestAnErasedTaskSaysNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.speaks(t, "1.0")
	got := c.read(c.ask("SendMessage", c.params("an id of the client's own", text("@say Secret words."), "")))
	said := c.say("@refuse", fmt.Sprintf(`"contextId":%q`, got.ContextID)).Status.Message.Parts[0].Text
	left := func() (n int) {
		t.Helper()
		const sql = `SELECT count(*) FROM messages AS row WHERE position('an id of the client' IN row::text) > 0 OR position($1 IN row::text) > 0`
		if err := s.Pool.QueryRow(t.Context(), sql, *said).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := left(); n != 2 {
		t.Errorf("%d messages have the id or the failure", n)
	}
	if _, err := s.Sessions.EraseContent(t.Context(), uuid.MustParse(got.ContextID), "test"); err != nil {
		t.Fatal(err)
	}
	if n := left(); n != 0 {
		t.Errorf("%d messages still have the id or the failure", n)
	}
	now := c.get(got.ID)
	if now.state() != "TASK_STATE_COMPLETED" || len(now.Artifacts)+len(now.History) != 0 {
		t.Errorf("%+v", now)
	}
	e := c.with("Last-Event-ID", "1").refused(-32000, "SubscribeToTask", fmt.Sprintf(`{"id":%q}`, got.ID))
	if !strings.Contains(string(e.Data), "SESSION_GONE") {
		t.Errorf("%+v", e)
	}
}
