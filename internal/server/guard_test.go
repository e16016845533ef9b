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
	"github.com/parley-server/parley/internal/testing/apitest"
)

// route is one way to call an operation with objects of the test's workspace.
type route struct {
	apitest.Call
	scope apikey.Scope
}

// routes returns every operation of every protocol, for a workspace, a session, a chat and an
// approval.
func routes(ws, session, chat, approval string) []route {
	base := "/api/v1/workspaces/" + ws
	user := `"messages":[{"role":"user","parts":[{"type":"text","text":"count to 2"}]}]`
	respond := `"messages":[{"role":"assistant","parts":[{"state":"approval-responded","approval":{"id":"` + approval +
		`","approved":true}}]}]`
	resume := `"resume":[{"interruptId":"` + approval + `","status":"resolved","payload":{"approved":true}}]`
	return []route{
		{apitest.Call{Path: "/openai/v1/models"}, apikey.Chat},
		{apitest.Call{Path: "/openai/v1/models/demo"}, apikey.Chat},
		{apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("count to 2")}, apikey.Chat},
		{apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("allow "+codeOf(approval), `"session_id":"`+session+`"`)},
			apikey.Chat},
		{apitest.Call{Path: "/v1/responses", Body: `{"model":"demo","input":"count to 2"}`}, apikey.Chat},
		{apitest.Call{Path: "/v1/responses", Body: `{"model":"demo","input":"hello","session_id":"` + session + `"}`}, apikey.Chat},
		{apitest.Call{Path: base + "/ui/chat", Body: `{"id":"` + chat + `x",` + user + `}`}, apikey.Chat},
		{apitest.Call{Path: base + "/ui/chat", Body: `{"id":"x","session_id":"` + session + `",` + user + `}`}, apikey.Chat},
		{apitest.Call{Path: base + "/ui/chat", Body: `{"id":"` + chat + `",` + respond + `}`}, apikey.Chat},
		{apitest.Call{Path: base + "/ui/chat/" + chat + "x/stream"}, apikey.SessionsRead},
		{apitest.Call{Method: "DELETE", Path: base + "/ui/chat/" + chat + "x/stream"}, apikey.Chat},
		{apitest.Call{Path: base + "/ag-ui", Body: `{"threadId":"` + chat + `x","runId":"` + uuid.NewString() +
			`","messages":[{"role":"user","content":"count to 2"}]}`}, apikey.Chat},
		{apitest.Call{Path: base + "/ag-ui", Body: `{"threadId":"` + session + `","runId":"r","messages":[],` + resume + `}`}, apikey.Chat},
	}
}

// codeOf returns the code of an approval in a chat.
func codeOf(approval string) string { return session.CodeOf(uuid.MustParse(approval)).String() }

// waiting starts a chat whose turn waits for an approval.
func (s *service) waiting(t *testing.T, chat string) (session, approval string) {
	t.Helper()
	list := s.Stream(t, apitest.UIMessage(chat, "@call gate {}\n@say the end"))
	return apitest.FrameSession(t, list), apitest.FrameField(list, "approvalId")
}

// TestGuard checks every operation with every principal: only the scope of the operation allows it.
// A rejected principal learns nothing and changes nothing.
func TestGuard(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	other, err := s.Workspaces.Create(t.Context(), "another", "", "")
	if err != nil {
		t.Fatal(err)
	}
	session, approval := s.waiting(t, "chat")
	list := routes("demo", session, "chat", approval)
	before := s.State(t)
	check := func(who, key string, want func(route) (int, string)) {
		for _, r := range list {
			status, code := want(r)
			if status == 0 {
				continue
			}
			c := r.Call
			c.Key = key
			got := s.Get(t, c)
			if got.Status != status || got.Code != code || got.Body["request_id"] == "" || got.Header.Get("X-Request-Id") == "" ||
				got.Header.Get("RateLimit") != "" {
				t.Errorf("%s %s with %s: %d %s", r.Path, r.Body, who, got.Status, got.Text)
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
			if strings.HasPrefix(r.Path, "/api/") { // the others do not name a workspace
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
	if after := s.State(t); after != before {
		t.Errorf("a rejected call has changed something:\n%s\n%s", before, after)
	}
	s.Gate.Leave <- struct{}{}
	for _, r := range list { // the scope alone is enough
		c := r.Call
		c.Key = s.Issue(t, s.Workspace, r.scope)
		if got := s.Get(t, c); got.Status >= 400 && got.Status != 409 || got.Header.Get("RateLimit") == "" {
			t.Errorf("%s %s with %s: %d %s", r.Path, r.Body, r.scope, got.Status, got.Text)
		}
	}
}

// TestWorkspacesAreApart checks that an object of another workspace gets the same response as a
// missing one, and is not changed.
func TestWorkspacesAreApart(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	other, err := s.Workspaces.Create(t.Context(), "another", "", "")
	if err != nil {
		t.Fatal(err)
	}
	foreign := s.Issue(t, other, apikey.All...)
	session, approval := s.waiting(t, "chat")
	before := s.State(t)
	absent := []string{uuid.NewString(), "no-chat", uuid.NewString()}
	for _, ref := range []string{"another", other.ID.String()} {
		there, none := routes(ref, session, "chat", approval), routes(ref, absent[0], absent[1], absent[2])
		for i := range there {
			if there[i].Path == none[i].Path && there[i].Body == none[i].Body || strings.Contains(there[i].Body,
				"count to 2") && !strings.Contains(there[i].Body, session) {
				continue // it names no object, or only one that may have the same name
			}
			plain := func(c apitest.Call) string {
				c.Key, c.Body = foreign, strings.Replace(c.Body, `"model":"demo"`, `"model":"another"`, 1)
				r := s.Get(t, c)
				text := fmt.Sprint(r.Status, r.Text)
				for _, id := range append(absent, session, approval, "chat", r.Header.Get("X-Request-Id")) {
					text = strings.ReplaceAll(text, id, "")
				}
				return text
			}
			if a, b := plain(there[i].Call), plain(none[i].Call); a != b {
				t.Errorf("%s %s: %s, but of nothing: %s", there[i].Path, there[i].Body, a, b)
			}
		}
	}
	if after := s.State(t); after != before {
		t.Errorf("%s became %s", before, after)
	}
	one := apitest.UIMessage("chat", "count to 2")
	one.Key, one.Path = foreign, strings.Replace(one.Path, "demo", "another", 1)
	if got := apitest.FrameSession(t, s.Stream(t, one)); got == session {
		t.Error("one chat in two workspaces is one session")
	}
}

// TestTurnsOfOthersAreRead checks that a key that may only send reads the turns that it sent, and
// none that other keys started.
func TestTurnsOfOthersAreRead(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Window: time.Hour})
	own, other, reader := s.Issue(t, s.Workspace, apikey.Chat), s.Issue(t, s.Workspace, apikey.Chat), s.Issue(t, s.Workspace, apikey.Chat,
		apikey.SessionsRead)
	begin := []apitest.Call{apitest.AGUIRun("thread", "r", apitest.GatedCommand), {Path: apitest.CompletionsPath,
		Body: apitest.Completion(apitest.GatedCommand, `"user":"u"`)}}
	var asked apitest.Reply
	for _, c := range begin {
		c.Key = own
		asked = s.Get(t, c)
	}
	for name, come := range map[string]apitest.Call{
		"an attaching run":  {Path: apitest.RunsPath, Body: `{"threadId":"thread","runId":"r2","messages":[]}`},
		"the message again": begin[0],
		"continue":          {Path: apitest.CompletionsPath, Body: apitest.Completion("continue", `"user":"u"`)},
		"an assistant's own": {Path: apitest.CompletionsPath,
			Body: `{"model":"demo","user":"u","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]}`},
		"continue of responses": {Path: "/v1/responses", Body: `{"model":"demo","input":"continue","user":"u"}`},
	} {
		for key, want := range map[string]int{own: 200, other: 403, reader: 200} {
			if come.Key = key; key != own && name == "the message again" {
				want = 422 // its id is an Idempotency-Key, which belongs to the first key
			}
			if r := s.Get(t, come); r.Status != want || want == 403 && (r.Code != "INSUFFICIENT_SCOPE" ||
				!strings.Contains(r.Text, "sessions:read")) {
				t.Errorf("%s, %d: %d %s", name, want, r.Status, r.Text)
			}
		}
	}
	before := s.State(t)
	c := apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("deny", `"user":"u"`), Key: other}
	if r := s.Get(t, c); r.Status != 403 || r.Code != "INSUFFICIENT_SCOPE" || s.State(t) != before {
		t.Errorf("a key without sessions:read reads the question: %d %s", r.Status, r.Text)
	}
	c.Body = apitest.Completion(apitest.CodeReply(t, asked.Text, "deny"), `"user":"u"`)
	if r := s.Get(t, c); r.Status != 200 || s.State(t) == before {
		t.Errorf("the scope chat is sufficient for an answer: %d %s", r.Status, r.Text)
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	for path, allow := range map[string]string{"/openai/v1/models": "GET, HEAD, OPTIONS", apitest.CompletionsPath: "OPTIONS, POST",
		apitest.UIChatPath:               "OPTIONS, POST",
		apitest.UIChatPath + "/x/stream": "DELETE, GET, HEAD, OPTIONS", apitest.RunsPath: "OPTIONS, POST"} {
		if r := s.Get(t, apitest.Call{Method: "OPTIONS", Path: path, Key: "-"}); r.Status != 204 || r.Header.Get("Allow") != allow {
			t.Errorf("OPTIONS %s: %d %v", path, r.Status, r.Header)
		}
		if r := s.Get(t, apitest.Call{Method: "PATCH", Path: path, Key: "-"}); r.Status != 405 || r.Code != "METHOD_NOT_ALLOWED" ||
			r.Header.Get("Allow") != allow {
			t.Errorf("PATCH %s: %d %s", path, r.Status, r.Text)
		}
	}
}

// TestOtherPathsOfOpenAI checks that unsupported paths of OpenAI return an error in OpenAI's format
// that lists the supported ones.
func TestOtherPathsOfOpenAI(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	for _, path := range []string{"/openai/v1/embeddings", "/openai/v1/responses/resp_1/input_items", "/openai/chat/completions", "/openai/"} {
		r := s.Get(t, apitest.Call{Path: path, Body: `{}`})
		if e, _ := r.Body["error"].(map[string]any); r.Status != 404 || r.Code != "NOT_FOUND" ||
			!strings.Contains(r.Text, `"param":null`) || !strings.Contains(e["message"].(string), "chat/completions") ||
			strings.HasSuffix(path, "embeddings") != strings.Contains(r.Text, "for its own search alone") {
			t.Errorf("%s: %d %s", path, r.Status, r.Text)
		}
	}
}

// TestQuotas checks that the quota of a key is the same for every protocol.
func TestQuotas(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{Limits: ratelimit.Limits{Messages: 2, Calls: 1000, Streams: 2}})
	open := []*http.Response{s.Do(t, apitest.UIMessage("c1", apitest.HeldCommand)),
		s.Do(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion(apitest.HeldCommand, `"stream":true`, `"user":"u"`)})}
	s.Gate.Await(t)
	s.Gate.Await(t)
	if r := s.Get(t, apitest.AGUIRun("t", "r", "x")); r.Status != 429 || r.Code != "CONCURRENCY_LIMIT" || r.Header.Get("Retry-After") == "" {
		t.Errorf("a third stream: %d %s", r.Status, r.Text)
	}
	if r := s.Get(t, apitest.Call{Path: apitest.UIChatPath + "/c1/stream"}); r.Status != 429 || r.Code != "CONCURRENCY_LIMIT" {
		t.Errorf("a third stream: %d %s", r.Status, r.Text)
	}
	if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("x")}); r.Status != 429 {
		t.Errorf("a blocking call beside two streams: %d %s", r.Status, r.Text)
	}
	if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("allow",
		`"user":"u"`)}); r.Code != "CONCURRENCY_LIMIT" || !strings.HasPrefix(r.Header.Get("RateLimit"), `"calls"`) {
		t.Errorf("a decision word counts as a message: %d %s %s", r.Status, r.Text, r.Header.Get("RateLimit"))
	}
	if r := s.Get(t, apitest.AGUIResume("t", uuid.NewString(), `"status":"cancelled"`)); r.Code != "CONCURRENCY_LIMIT" ||
		!strings.HasPrefix(r.Header.Get("RateLimit"), `"calls"`) {
		t.Errorf("an answer counts as a message: %d %s %s", r.Status, r.Text, r.Header.Get("RateLimit"))
	}
	s.Gate.Leave <- struct{}{}
	s.Gate.Leave <- struct{}{}
	for _, res := range open {
		if list, ok := apitest.Frames(t, res); !ok {
			t.Errorf("cut off after %v", list)
		}
	}
	if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("x")}); r.Status != 429 ||
		r.Code != "RATE_LIMITED" || r.Header.Get("Retry-After") == "" {
		t.Errorf("a third message: %d %s", r.Status, r.Text)
	}
}

// TestStreamsAreCutOff checks that a stream that cannot be completed is aborted, so that no client
// takes it for complete. Its turn continues.
func TestStreamsAreCutOff(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	doomed := s.Issue(t, s.Workspace, apikey.Chat)
	open := []apitest.Call{apitest.UIMessage("c1", apitest.HeldCommand), apitest.AGUIRun("t1", "r1", apitest.HeldCommand),
		{Path: apitest.CompletionsPath, Body: apitest.Completion(apitest.HeldCommand, `"stream":true`)}}
	var streams []*http.Response
	for _, c := range open {
		c.Key = doomed
		streams = append(streams, s.Do(t, c))
		s.Gate.Await(t)
	}
	if err := s.Keys.Revoke(t.Context(), s.Workspace.ID, doomed[4:12]); err != nil {
		t.Fatal(err)
	}
	last := s.Do(t, apitest.AGUIRun("t2", "r2", apitest.HeldCommand))
	s.Gate.Await(t)
	for i, res := range streams {
		if list, ok := apitest.Frames(t, res); ok {
			t.Errorf("%s ended cleanly with a revoked key: %v", open[i].Path, list)
		}
	}
	s.Halt()
	if list, ok := apitest.Frames(t, last); ok {
		t.Errorf("it ended cleanly although the service stopped: %v", list)
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
