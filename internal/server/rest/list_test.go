package rest_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func decode(t testing.TB, data json.RawMessage, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
}

type listed struct {
	SessionID string `json:"session_id"`
	CallerID  *string
	Status    string
	Content   *string
	Role      string
	Label     string
	Skill     string
	LastSeq   int64 `json:"last_seq"`
}

// pages reads a whole list.
func (s *service) pages(t testing.TB, path string) (all []listed, pages int) {
	t.Helper()
	cursor := ""
	for {
		next := path
		if cursor != "" {
			next += "&cursor=" + url.QueryEscape(cursor)
		}
		r := s.get(t, call{path: next})
		var page struct {
			Data []listed
			More bool    `json:"has_more"`
			Next *string `json:"next_cursor"`
		}
		decode(t, []byte(r.text), &page)
		if r.status != 200 || page.More != (page.Next != nil) {
			t.Fatalf("%d %s", r.status, r.text)
		}
		all, pages = append(all, page.Data...), pages+1
		if !page.More {
			return all, pages
		}
		cursor = *page.Next
	}
}

func TestListSessions(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if r := s.get(t, call{path: "sessions"}); strings.TrimSpace(r.text) != `{"data":[],"has_more":false,"next_cursor":null}` {
		t.Errorf("empty: %s", r.text)
	}
	for i := range 5 {
		s.ask(t, body(t, "@text 1 delta", `"stream":false`, fmt.Sprintf(`"caller_id":"c%d"`, i)))
	}
	st := s.say(t, held)
	live := sessionOf(t, st.until("open")[0])
	s.Gate.Await(t)
	newest, n := s.pages(t, "sessions?limit=2")
	oldest, _ := s.pages(t, "sessions?limit=4&order=asc")
	if len(newest) != 6 || n != 3 || len(oldest) != 6 || newest[0].SessionID != live || newest[0].Status != "thinking" ||
		newest[0].CallerID != nil {
		t.Fatalf("%+v in %d pages, %+v", newest, n, oldest)
	}
	for i := range newest {
		if newest[i].SessionID != oldest[5-i].SessionID {
			t.Errorf("orders differ at %d", i)
		}
	}
	for query, want := range map[string]int{
		"status=thinking": 1, "status=completed": 5, "status=not_started": 0, "caller_id=c3": 1, "caller_id=nobody": 0,
		"created_after=2020-01-01T00:00:00Z": 6, "created_after=2999-01-01T00:00:00%2B02:00": 0,
	} {
		if got, _ := s.pages(t, "sessions?"+query); len(got) != want {
			t.Errorf("%s: %d, want %d", query, len(got), want)
		}
	}
	s.Gate.Leave <- struct{}{}
	st.rest()
}

func TestListMessages(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first, _ := s.ask(t, body(t, "@call look {\"at\":\"a\"}\n@text 1 delta", `"stream":false`, `"caller_id":"anna"`))
	s.ask(t, body(t, "@text 1 delta\n@error content_refused", `"stream":false`, `"caller_id":"anna"`))
	st := s.say(t, held, `"caller_id":"anna"`)
	st.until("tool_use")
	path := "sessions/" + first.SessionID + "/messages?"
	asc, _ := s.pages(t, path+"limit=4")
	desc, _ := s.pages(t, path+"limit=1&order=desc")
	if len(asc) != 6 || len(desc) != 6 {
		t.Fatalf("%+v, %+v", asc, desc)
	}
	var status []string
	for i, m := range asc {
		status = append(status, m.Role+" "+m.Status)
		if m.Role != desc[5-i].Role || m.Status != desc[5-i].Status {
			t.Errorf("orders differ at %d", i)
		}
	}
	want := "[user completed assistant completed user completed assistant failed user completed assistant in_progress]"
	if got := fmt.Sprint(status); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if r := s.get(t, call{path: path}); !strings.Contains(r.text, `"references":[{"path":"a","source":"read"}]`) ||
		!strings.Contains(r.text, `"error":"content_refused"`) {
		t.Errorf("%s", r.text)
	}
	s.Gate.Leave <- struct{}{}
	st.rest()
}

func TestBadListParameters(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	a, _ := s.ask(t, body(t, "@text 1 delta", `"stream":false`))
	for query, want := range map[string]string{
		"limit=0": "/limit minimum", "limit=101": "/limit maximum", "limit=-1": "/limit minimum", "limit=x": "/limit type",
		"limit=1.5":                  "/limit type",
		"limit=99999999999999999999": "/limit type", "limit=1&limit=1": "/limit repeated", "order=up": "/order enum",
		"%zz": "/query format", "a;b": "/query format",
		"limit=": "/limit min_length", "cursor=": "/cursor min_length", "order=": "/order min_length",
		"limit=&cursor=&lmit=1": "/lmit unknown, /limit min_length, /cursor min_length",
		"limit=0&order=x":       "/limit minimum, /order enum",
	} {
		for _, list := range []string{"sessions", "sessions/" + a.SessionID + "/messages"} {
			s.badList(t, list+"?"+query, want)
		}
	}
	for query, want := range map[string]string{
		"status=done": "/status enum", "created_after=yesterday": "/created_after format", "created_after=2026-01-01": "/created_after format",
		"caller_id=": "/caller_id min_length", "status=": "/status min_length", "created_after=": "/created_after min_length",
		"caller_id":     "/caller_id min_length",
		"caller_id=%00": "/caller_id format", "caller_id=%ff": "/caller_id format",
		"limit=0&status=x&created_after=x": "/limit minimum, /status enum, /created_after format",
	} {
		s.badList(t, "sessions?"+query, want)
	}
	for _, cursor := range []string{"x", "%00", "%ff", strings.Repeat("A", 10<<10), "AAAA"} {
		for _, list := range []string{"sessions", "sessions/" + a.SessionID + "/messages"} {
			if r := s.get(t, call{path: list + "?cursor=" + cursor}); r.status != 400 || r.Error.Code != "INVALID_CURSOR" {
				t.Errorf("%s, cursor %.20s: %d %s", list, cursor, r.status, r.text)
			}
		}
	}
	for _, id := range []string{uuid.NewString(), "nonsense", strings.ToUpper(uuid.NewString())} {
		if r := s.get(t, call{path: "sessions/" + id + "/messages"}); r.status != 404 || r.Error.Code != "SESSION_NOT_FOUND" {
			t.Errorf("%s: %d %s", id, r.status, r.text)
		}
	}
}

func (s *service) badList(t *testing.T, path, want string) {
	t.Helper()
	r := s.get(t, call{path: path})
	var got []string
	for _, v := range r.Error.Violations {
		got = append(got, v.Param+" "+v.Rule)
	}
	if have := strings.Join(got, ", "); r.status != 400 || r.Error.Code != "INVALID_REQUEST" || have != want {
		t.Errorf("%s: %d %s, want %s", path, r.status, have, want)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	st := s.say(t, held)
	id := sessionOf(t, st.until("open")[0])
	s.Gate.Await(t)
	cancel := call{method: "POST", path: "sessions/" + id + "/cancel"}
	first := s.get(t, cancel)
	var got struct {
		Canceled bool
		Deferred bool `json:"runner_halt_deferred"`
		Reason   string
	}
	if decode(t, first.Data, &got); first.status != 200 || !got.Canceled || got.Reason != "" {
		t.Errorf("%d %s", first.status, first.text)
	}
	rest := st.rest()
	if n := len(rest); n < 2 || rest[n-1].event != "done" || !strings.Contains(rest[n-2].data, `"code":"canceled"`) {
		t.Errorf("%v", rest)
	}
	for range 2 {
		if r := s.get(t, cancel); r.status != 200 ||
			strings.TrimSpace(r.text) != `{"data":{"canceled":false,"runner_halt_deferred":false,"reason":"not_in_progress"}}` {
			t.Errorf("again: %d %s", r.status, r.text)
		}
	}
	cancel.body = "not even JSON"
	if r := s.get(t, cancel); r.status != 200 {
		t.Errorf("with a body: %d", r.status)
	}
	if r := s.get(t, call{method: "POST", path: "sessions/" + uuid.NewString() + "/cancel"}); r.status != 404 ||
		r.Error.Code != "SESSION_NOT_FOUND" {
		t.Errorf("of nothing: %d %s", r.status, r.text)
	}
}
