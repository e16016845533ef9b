package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
)

// route is one way to call a door; what it names is ours.
type route struct {
	call
	scope apikey.Scope
}

// routes are every operation of every door, below a workspace and about a session, a chat and
// an approval.
func routes(ws, session, chat, approval string) []route {
	base := "/api/v1/workspaces/" + ws
	user := `"messages":[{"role":"user","parts":[{"type":"text","text":"count to 2"}]}]`
	respond := `"messages":[{"role":"assistant","parts":[{"state":"approval-responded","approval":{"id":"` + approval + `","approved":true}}]}]`
	resume := `"resume":[{"interruptId":"` + approval + `","status":"resolved","payload":{"approved":true}}]`
	return []route{
		{call{path: "/openai/v1/models"}, apikey.Chat},
		{call{path: "/openai/v1/models/demo"}, apikey.Chat},
		{call{path: completions, body: said("count to 2")}, apikey.Chat},
		{call{path: completions, body: said("allow "+codeOf(approval), `"session_id":"`+session+`"`)}, apikey.Chat},
		{call{path: "/v1/responses", body: `{"model":"demo","input":"count to 2"}`}, apikey.Chat},
		{call{path: "/v1/responses", body: `{"model":"demo","input":"hello","session_id":"` + session + `"}`}, apikey.Chat},
		{call{path: base + "/ui/chat", body: `{"id":"` + chat + `x",` + user + `}`}, apikey.Chat},
		{call{path: base + "/ui/chat", body: `{"id":"x","session_id":"` + session + `",` + user + `}`}, apikey.Chat},
		{call{path: base + "/ui/chat", body: `{"id":"` + chat + `",` + respond + `}`}, apikey.Chat},
		{call{path: base + "/ui/chat/" + chat + "x/stream"}, apikey.SessionsRead},
		{call{method: "DELETE", path: base + "/ui/chat/" + chat + "x/stream"}, apikey.Chat},
		{call{path: base + "/ag-ui", body: `{"threadId":"` + chat + `x","runId":"` + uuid.NewString() + `","messages":[{"role":"user","content":"count to 2"}]}`}, apikey.Chat},
		{call{path: base + "/ag-ui", body: `{"threadId":"` + session + `","runId":"r","messages":[],` + resume + `}`}, apikey.Chat},
	}
}

// codeOf is the code of an approval in a chat.
func codeOf(approval string) string { return session.CodeOf(uuid.MustParse(approval)).String() }

// waiting starts a chat whose turn waits for an approval.
func (s *service) waiting(t *testing.T, chat string) (session, approval string) {
	t.Helper()
	list := s.stream(t, asked(chat, "@call gate {}\n@say the end"))
	return sessionIn(t, list), field(list, "approvalId")
}

// state is everything that a request can change.
func (s *service) state(t *testing.T) (text string) {
	t.Helper()
	if err := s.Pool.QueryRow(t.Context(), `SELECT (SELECT string_agg(id::text || state, ',' ORDER BY id) FROM turns) || (SELECT string_agg(id::text || status, ',' ORDER BY id) FROM approvals)
		|| (SELECT count(*) FROM sessions) || ' ' || (SELECT count(*) FROM messages)`).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

// Every operation and every principal: the scope opens it, and nothing else does. Who is
// refused learns nothing and changes nothing.
func TestGuard(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	other, err := s.Workspaces.Create(t.Context(), "another", "", "")
	if err != nil {
		t.Fatal(err)
	}
	session, approval := s.waiting(t, "chat")
	list := routes("demo", session, "chat", approval)
	before := s.state(t)
	check := func(who, key string, want func(route) (int, string)) {
		for _, r := range list {
			status, code := want(r)
			if status == 0 {
				continue
			}
			c := r.call
			c.key = key
			got := s.get(t, c)
			if got.status != status || got.code != code || got.body["request_id"] == "" || got.header.Get("X-Request-Id") == "" || got.header.Get("RateLimit") != "" {
				t.Errorf("%s %s with %s: %d %s", r.path, r.body, who, got.status, got.text)
			}
		}
	}
	all := func(status int, code string) func(route) (int, string) {
		return func(route) (int, string) { return status, code }
	}
	check("no key", "-", all(401, "MISSING_API_KEY"))
	check("a malformed key", "nonsense", all(401, "INVALID_API_KEY"))
	for _, scope := range apikey.All {
		revoked := s.Issue(t, s.Workspace, scope)
		if err := s.Keys.Revoke(t.Context(), s.Workspace.ID, revoked[4:12]); err != nil {
			t.Fatal(err)
		}
		check("a revoked key with "+string(scope), revoked, all(401, "INVALID_API_KEY"))
		check("another workspace's key with "+string(scope), s.Issue(t, other, scope), func(r route) (int, string) {
			if strings.HasPrefix(r.path, "/api/") { // the others name no workspace
				return 404, "WORKSPACE_NOT_FOUND"
			}
			return 0, ""
		})
		check("a key with "+string(scope), s.Issue(t, s.Workspace, scope), func(r route) (int, string) {
			if scope == r.scope {
				return 0, ""
			}
			return 403, "INSUFFICIENT_SCOPE"
		})
	}
	if after := s.state(t); after != before {
		t.Errorf("somebody who was refused has changed something:\n%s\n%s", before, after)
	}
	s.Gate.Leave <- struct{}{}
	for _, r := range list { // and the scope alone is enough
		c := r.call
		c.key = s.Issue(t, s.Workspace, r.scope)
		if got := s.get(t, c); got.status >= 400 && got.status != 409 || got.header.Get("RateLimit") == "" {
			t.Errorf("%s %s with %s: %d %s", r.path, r.body, r.scope, got.status, got.text)
		}
	}
}

// What is another workspace's answers like what does not exist, and nothing happens to it.
func TestWorkspacesAreApart(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	other, err := s.Workspaces.Create(t.Context(), "another", "", "")
	if err != nil {
		t.Fatal(err)
	}
	foreign := s.Issue(t, other, apikey.All...)
	session, approval := s.waiting(t, "chat")
	before := s.state(t)
	absent := []string{uuid.NewString(), "no-chat", uuid.NewString()}
	for _, ref := range []string{"another", other.ID.String()} {
		there, none := routes(ref, session, "chat", approval), routes(ref, absent[0], absent[1], absent[2])
		for i := range there {
			if there[i].path == none[i].path && there[i].body == none[i].body || strings.Contains(there[i].body, "count to 2") && !strings.Contains(there[i].body, session) {
				continue // it names nothing of ours, or only what may have the same name
			}
			plain := func(c call) string {
				c.key, c.body = foreign, strings.Replace(c.body, `"model":"demo"`, `"model":"another"`, 1)
				r := s.get(t, c)
				text := fmt.Sprint(r.status, r.text)
				for _, id := range append(absent, session, approval, "chat", r.header.Get("X-Request-Id")) {
					text = strings.ReplaceAll(text, id, "")
				}
				return text
			}
			if a, b := plain(there[i].call), plain(none[i].call); a != b {
				t.Errorf("%s %s: %s, but of nothing: %s", there[i].path, there[i].body, a, b)
			}
		}
	}
	if after := s.state(t); after != before {
		t.Errorf("%s became %s", before, after)
	}
	one := asked("chat", "count to 2")
	one.key, one.path = foreign, strings.Replace(one.path, "demo", "another", 1)
	if got := sessionIn(t, s.stream(t, one)); got == session {
		t.Error("one chat in two workspaces is one session")
	}
}

// Who may only send is told what was sent with the same key, and nothing that others have begun.
func TestTurnsOfOthersAreRead(t *testing.T) {
	t.Parallel()
	s := start(t, options{window: time.Hour})
	own, other, reader := s.Issue(t, s.Workspace, apikey.Chat), s.Issue(t, s.Workspace, apikey.Chat), s.Issue(t, s.Workspace, apikey.Chat, apikey.SessionsRead)
	begin := []call{runOf("thread", "r", gated), {path: completions, body: said(gated, `"user":"u"`)}}
	var asked reply
	for _, c := range begin {
		c.key = own
		asked = s.get(t, c)
	}
	for name, come := range map[string]call{
		"an attaching run":      {path: runs, body: `{"threadId":"thread","runId":"r2","messages":[]}`},
		"the message again":     begin[0],
		"continue":              {path: completions, body: said("continue", `"user":"u"`)},
		"an assistant's own":    {path: completions, body: `{"model":"demo","user":"u","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]}`},
		"continue of responses": {path: "/v1/responses", body: `{"model":"demo","input":"continue","user":"u"}`},
	} {
		for key, want := range map[string]int{own: 200, other: 403, reader: 200} {
			if come.key = key; key != own && name == "the message again" {
				want = 422 // its id is an Idempotency-Key, which belongs to the key that came first
			}
			if r := s.get(t, come); r.status != want || want == 403 && (r.code != "INSUFFICIENT_SCOPE" || !strings.Contains(r.text, "sessions:read")) {
				t.Errorf("%s, %d: %d %s", name, want, r.status, r.text)
			}
		}
	}
	before := s.state(t)
	c := call{path: completions, body: said("deny", `"user":"u"`), key: other}
	if r := s.get(t, c); r.status != 403 || r.code != "INSUFFICIENT_SCOPE" || s.state(t) != before {
		t.Errorf("the question is read by a key without sessions:read: %d %s", r.status, r.text)
	}
	c.body = said(typed(t, asked.text, "deny"), `"user":"u"`)
	if r := s.get(t, c); r.status != 200 || s.state(t) == before {
		t.Errorf("an answer takes chat alone: %d %s", r.status, r.text)
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	for path, allow := range map[string]string{"/openai/v1/models": "GET, HEAD, OPTIONS", completions: "OPTIONS, POST", chats: "OPTIONS, POST",
		chats + "/x/stream": "DELETE, GET, HEAD, OPTIONS", runs: "OPTIONS, POST"} {
		if r := s.get(t, call{method: "OPTIONS", path: path, key: "-"}); r.status != 204 || r.header.Get("Allow") != allow {
			t.Errorf("OPTIONS %s: %d %v", path, r.status, r.header)
		}
		if r := s.get(t, call{method: "PATCH", path: path, key: "-"}); r.status != 405 || r.code != "METHOD_NOT_ALLOWED" || r.header.Get("Allow") != allow {
			t.Errorf("PATCH %s: %d %s", path, r.status, r.text)
		}
	}
}

// What of OpenAI's paths is not there is an error of OpenAI's shape, which says what is.
func TestOtherPathsOfOpenAI(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	for _, path := range []string{"/openai/v1/embeddings", "/v1/completions", "/openai/v1/responses/resp_1", "/openai/chat/completions", "/openai/"} {
		r := s.get(t, call{path: path, body: `{}`})
		if e, _ := r.body["error"].(map[string]any); r.status != 404 || r.code != "NOT_FOUND" || !strings.Contains(r.text, `"param":null`) || !strings.Contains(e["message"].(string), "chat/completions") {
			t.Errorf("%s: %d %s", path, r.status, r.text)
		}
	}
}

// The quotas are those of the key, whatever the door.
func TestQuotas(t *testing.T) {
	t.Parallel()
	s := start(t, options{limits: ratelimit.Limits{Messages: 2, Calls: 1000, Streams: 2}})
	open := []*http.Response{s.do(t, asked("c1", held)), s.do(t, call{path: completions, body: said(held, `"stream":true`, `"user":"u"`)})}
	s.Gate.Await(t)
	s.Gate.Await(t)
	if r := s.get(t, runOf("t", "r", "x")); r.status != 429 || r.code != "CONCURRENCY_LIMIT" || r.header.Get("Retry-After") == "" {
		t.Errorf("a third stream: %d %s", r.status, r.text)
	}
	if r := s.get(t, call{path: chats + "/c1/stream"}); r.status != 429 || r.code != "CONCURRENCY_LIMIT" {
		t.Errorf("a third stream: %d %s", r.status, r.text)
	}
	if r := s.get(t, call{path: completions, body: said("x")}); r.status != 429 {
		t.Errorf("a blocking call beside two streams: %d %s", r.status, r.text)
	}
	if r := s.get(t, call{path: completions, body: said("allow", `"user":"u"`)}); r.code != "CONCURRENCY_LIMIT" || !strings.HasPrefix(r.header.Get("RateLimit"), `"calls"`) {
		t.Errorf("a word is no message: %d %s %s", r.status, r.text, r.header.Get("RateLimit"))
	}
	if r := s.get(t, resumed("t", uuid.NewString(), `"status":"cancelled"`)); r.code != "CONCURRENCY_LIMIT" || !strings.HasPrefix(r.header.Get("RateLimit"), `"calls"`) {
		t.Errorf("an answer is no message: %d %s %s", r.status, r.text, r.header.Get("RateLimit"))
	}
	s.Gate.Leave <- struct{}{}
	s.Gate.Leave <- struct{}{}
	for _, res := range open {
		if list, ok := frames(t, res); !ok {
			t.Errorf("cut off after %v", list)
		}
	}
	if r := s.get(t, call{path: completions, body: said("x")}); r.status != 429 || r.code != "RATE_LIMITED" || r.header.Get("Retry-After") == "" {
		t.Errorf("a third message: %d %s", r.status, r.text)
	}
}

// A stream that cannot be told to its end is cut off, so that nobody takes it for whole; its
// turn goes on.
func TestStreamsAreCutOff(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	doomed := s.Issue(t, s.Workspace, apikey.Chat)
	open := []call{asked("c1", held), runOf("t1", "r1", held), {path: completions, body: said(held, `"stream":true`)}}
	var streams []*http.Response
	for _, c := range open {
		c.key = doomed
		streams = append(streams, s.do(t, c))
		s.Gate.Await(t)
	}
	if err := s.Keys.Revoke(t.Context(), s.Workspace.ID, doomed[4:12]); err != nil {
		t.Fatal(err)
	}
	last := s.do(t, runOf("t2", "r2", held))
	s.Gate.Await(t)
	for i, res := range streams {
		if list, ok := frames(t, res); ok {
			t.Errorf("%s ended well with a dead key: %v", open[i].path, list)
		}
	}
	s.Halt()
	if list, ok := frames(t, last); ok {
		t.Errorf("it ended well where the service stops: %v", list)
	}
	for range 4 {
		s.Gate.Leave <- struct{}{}
	}
	rows, err := s.Pool.Query(t.Context(), "SELECT session_id FROM turns")
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil || len(ids) != 4 {
		t.Fatalf("%v: %v", ids, err)
	}
	for _, id := range ids {
		for evs, err := range s.EventLog.Follow(t.Context(), eventlog.From{Session: id}) {
			if err != nil {
				t.Fatal(err)
			}
			if evs[len(evs)-1].Kind == event.KindDone {
				break
			}
		}
	}
}
