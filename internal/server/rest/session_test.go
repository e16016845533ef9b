package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
)

// labeled is a session as the API shows it.
type labeled struct {
	SessionID string `json:"session_id"`
	Title     string
	User      *string
	Metadata  map[string]string
	Error     *string
	Status    string
}

func (s *service) session(t testing.TB, id string) (l labeled) {
	t.Helper()
	r := s.get(t, call{path: "sessions/" + id})
	if r.status != 200 {
		t.Fatalf("%d %s", r.status, r.text)
	}
	decode(t, r.Data, &l)
	return l
}

// TestLabelsBelongToTheFirstMessage sends messages with users and metadata over each way to start a
// turn: a session takes those of its first message, and each message keeps its own.
func TestLabelsBelongToTheFirstMessage(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const anna = `"user":"anna@example.com"`
	const gold = `"metadata":{"plan":"gold","order":"7"}`
	sent := map[string]call{
		"a plain message": {path: "messages", body: body(t, "@text 1 delta", `"stream":false`, anna, gold)},
		"a caller":        {path: "messages", body: body(t, "@text 1 delta", `"stream":false`, `"caller_id":"c"`, anna, gold)},
		"a chat": {path: "ui/chat",
			body: `{"id":"ui","messages":[{"role":"user","parts":[{"type":"text","text":"@text 1 delta"}]}],` + anna + `,` + gold + `}`},
		"a run": {path: "ag-ui",
			body: `{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"@text 1 delta"}],"forwardedProps":{` + anna +
				`,` + gold + `}}`},
		"a completion": {path: "/v1/chat/completions", body: `{"model":"demo","messages":[{"role":"user","content":"@text 1 delta"}],` +
			anna + `,` + gold + `}`},
	}
	for name, c := range sent {
		c.method = http.MethodPost
		if r := s.get(t, c); r.status != 200 {
			t.Fatalf("%s: %d %s", name, r.status, r.text)
		}
	}
	all, _ := s.pages(t, "sessions?user=anna%40example.com&metadata%5Bplan%5D=gold&metadata[order]=7")
	if len(all) != len(sent) {
		t.Fatalf("%d sessions, want %d", len(all), len(sent))
	}
	id := all[0].SessionID
	s.ask(t, body(t, "@text 1 delta", `"stream":false`, `"user":"bob"`, `"metadata":{"plan":"free"}`, `"session_id":"`+id+`"`))
	s.ask(t, body(t, "@text 1 delta", `"stream":false`, `"session_id":"`+id+`"`))
	if got := s.session(t, id); *got.User != "anna@example.com" || got.Metadata["plan"] != "gold" {
		t.Errorf("a later message has changed its session: %+v", got)
	}
	var page struct{ Data []labeled }
	decode(t, []byte(s.get(t, call{path: "sessions/" + id + "/messages"}).text), &page)
	var users []string
	for i := 0; i < len(page.Data); i += 2 {
		users = append(users, *page.Data[i].User+" "+page.Data[i].Metadata["plan"])
		if page.Data[i+1].User != nil {
			t.Errorf("the agent's message has a user: %+v", page.Data[i+1])
		}
	}
	if got := strings.Join(users, ", "); got != "anna@example.com gold, bob free, anna@example.com " {
		t.Errorf("messages: %s", got)
	}
	if r := s.get(t, call{method: http.MethodPost, path: "messages", body: body(t, "x", `"user":"`+strings.Repeat("u", 257)+`"`,
		`"metadata":{"`+strings.Repeat("k", 65)+`":"v","v":"`+
			strings.Repeat("v", 513)+`"}`)}); r.status != 400 || len(r.Error.Violations) != 3 {
		t.Errorf("%d %s", r.status, r.text)
	}
}

// TestSessionFiltersFindTheirSessions lists sessions by each filter.
func TestSessionFiltersFindTheirSessions(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(0))
	for i := range 3 {
		s.ask(t, body(t, fmt.Sprintf("@say The handbook says number%d.", i), `"stream":false`, `"caller_id":"done-`+fmt.Sprint(i)+`"`))
	}
	failed, _ := s.ask(t, body(t, "@error content_refused", `"stream":false`))
	waiting, _ := s.ask(t, body(t, "@call gate {}", `"stream":false`))
	canceled, _ := s.ask(t, body(t, "@call gate {}", `"stream":false`))
	s.get(t, call{method: http.MethodPost, path: "sessions/" + canceled.SessionID + "/cancel"})
	named, _ := s.ask(t, body(t, "@text 1 delta", `"stream":false`))
	if r := s.get(t, call{method: http.MethodPatch, path: "sessions/" + named.SessionID,
		body: `{"title":"Reisekosten 2026","metadata":{"a b":"ü"}}`}); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.text)
	}
	for query, want := range map[string]int{
		"status=failed": 1, "status=canceled": 1, "status=waiting": 1, "status=thinking": 1, "status=completed": 6,
		"q=HANDBOOK": 3, "q=number1": 1, "q=%22handbook+says%22": 3, "q=handbook+number2": 1, "q=number0+or+number2": 2, "q=reisekosten": 1,
		"q=nothing": 0, "q=handbook+-number1": 2,
		"metadata[a+b]=%C3%BC": 1, "metadata[a+b]=u": 0, "user=nobody": 0, "q=handbook&status=failed": 0,
		"created_before=2999-01-01T00:00:00Z": 7, "created_before=2020-01-01T00:00:00Z": 0, "q=handbook&created_before=2999-01-01T00:00:00Z": 3,
	} {
		got, _ := s.pages(t, "sessions?limit=2&"+query)
		oldest, _ := s.pages(t, "sessions?limit=1&order=asc&"+query)
		if len(got) != want || len(oldest) != want {
			t.Errorf("%s: %d and %d, want %d", query, len(got), len(oldest), want)
		}
	}
	if got := s.session(t, failed.SessionID); got.Error == nil || *got.Error != "content_refused" || got.Status != "completed" {
		t.Errorf("%+v", got)
	}
	if got, _ := s.pages(t, "sessions?status=waiting"); got[0].SessionID != waiting.SessionID {
		t.Errorf("%+v", got)
	}
	for _, query := range []string{"metadata=x", "metadata[]=x", "limit[a]=1", "q=", "metadata[a]=", "metadata[a%00]=x", "status=running",
		"created_before=now",
		"q=" + strings.Repeat("a", 201)} {
		if r := s.get(t, call{path: "sessions?" + query}); r.status != 400 || r.Error.Code != "INVALID_REQUEST" {
			t.Errorf("%s: %d %s", query, r.status, r.text)
		}
	}
}

// TestSessionsAreErasedByTheirKey erases a session with the key that began it, with its successor,
// and with an administrator's; another key may not.
func TestSessionsAreErasedByTheirKey(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	erase := func(id, key string) reply {
		return s.get(t, call{method: http.MethodDelete, path: "sessions/" + id, key: key})
	}
	begin := func(key string) string {
		r := s.get(t, call{method: http.MethodPost, path: "messages", key: key, body: body(t, "@say Private matters.", `"stream":false`,
			`"user":"anna"`, `"metadata":{"a":"b"}`)})
		var answer struct {
			ID string `json:"session_id"`
		}
		if err := json.Unmarshal([]byte(r.text), &answer); err != nil || r.status != 200 {
			t.Fatalf("%d %s", r.status, r.text)
		}
		return answer.ID
	}
	own, other, admin := s.Issue(t, s.Workspace, apikey.Chat), s.Issue(t, s.Workspace, apikey.Usual...),
		s.Issue(t, s.Workspace, apikey.Chat, apikey.Admin)
	first, second := begin(own), begin(own)
	if r := erase(first, other); r.status != 403 || r.Error.RequiredScope != "admin" {
		t.Errorf("another key: %d %s", r.status, r.text)
	}
	_, next, err := s.Keys.Rotate(t.Context(), s.Workspace.ID, own[4:12], 0)
	if err != nil {
		t.Fatal(err)
	}
	for id, key := range map[string]string{first: next, second: admin} {
		for range 2 {
			if r := erase(id, key); r.status != 200 {
				t.Errorf("%d %s", r.status, r.text)
			}
		}
		var by string
		if err := s.pool.QueryRow(t.Context(), `SELECT by FROM erasures WHERE session_id = $1`, id).Scan(&by); err != nil ||
			by != "key:"+key[4:12] {
			t.Errorf("erased by %q, %v", by, err)
		}
		if got := s.session(t, id); got.User != nil || len(got.Metadata) != 0 || got.Title != "" {
			t.Errorf("%+v", got)
		}
		if r := s.get(t, call{method: http.MethodPatch, path: "sessions/" + id, body: `{"title":"x"}`}); r.status != 404 {
			t.Errorf("%d %s", r.status, r.text)
		}
	}
	if got, _ := s.pages(t, "sessions?q="+url.QueryEscape("private matters")); len(got) != 0 {
		t.Errorf("an erased session is found by its words: %+v", got)
	}
	if r := erase("0192f0aa-0000-7000-8000-00000000ffff", admin); r.status != 404 || r.Error.Code != "SESSION_NOT_FOUND" {
		t.Errorf("%d %s", r.status, r.text)
	}
	if r := s.get(t, call{method: http.MethodPatch, path: "sessions/" + first, body: `{"titel":"x"}`}); r.status != 400 ||
		r.Error.Violations[0].Suggestion != "title" {
		t.Errorf("%d %s", r.status, r.text)
	}
}
