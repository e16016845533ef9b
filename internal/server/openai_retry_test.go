package server_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/wait"
)

// A request that its client sends again finds the turn that it has started, while that goes on
// and when it is over, until it has the whole answer: after that the same words are a message of
// their own.
func TestRetriesFindTheirTurn(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	replayed := func(name string, r reply) {
		t.Helper()
		if r.status != 200 || r.err != nil || r.header.Get("Idempotent-Replayed") != "true" || strings.Count(r.text, "0.") == 0 {
			t.Errorf("%s: %d %v %v %s", name, r.status, r.err, r.header, r.text)
		}
	}
	want := 1
	for name, c := range map[string]call{
		"a chat named in its body": {path: completions, body: said(held, `"user":"u"`)},
		"a chat named by a header": {path: completions, body: said(held), header: []string{"X-Session-Id", "h"}},
		"a response":               {path: responses, body: `{"model":"demo","conversation":"r","input":` + quote(held) + `}`},
		"a response that follows":  {path: responses, body: `{"model":"demo","previous_response_id":` + quote(s.get(t, call{path: responses, body: `{"model":"demo","input":"count to 2"}`}).body["id"].(string)) + `,"input":` + quote(held) + `}`},
	} {
		body := c.body
		for _, way := range []string{`,"stream":true}`, `,"stream":false}`} {
			c.body = strings.TrimSuffix(body, "}") + way
			retry := call{path: c.path, body: c.body, header: append(c.header, "X-Stainless-Retry-Count", "1")}
			s.lose(t, c)
			s.Gate.Leave <- struct{}{}
			s.over(t)
			replayed(name+way, s.get(t, retry))
			s.Gate.Leave <- struct{}{}
			if r := s.get(t, retry); r.status != 200 || r.header.Get("Idempotent-Replayed") != "" {
				t.Errorf("%s%s: who has the answer says the same, and gets that answer: %s", name, way, r.text)
			}
			s.Gate.Await(t)
			want += 2
		}
		c.body = strings.TrimSuffix(body, "}") + `,"stream":true}`
		s.lose(t, c)
		running := s.do(t, call{path: c.path, body: c.body, header: append(c.header, "X-Stainless-Retry-Count", "1")})
		s.Gate.Leave <- struct{}{}
		replayed(name, whole(running))
		want++
	}
	if _, _, turns := s.questions(t); turns != want {
		t.Errorf("%d turns, want %d", turns, want)
	}
}

// lose sends a message that waits at the gate, and leaves.
func (s *service) lose(t *testing.T, c call) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer " + s.Key}, "Content-Type": {"application/json"}}
	for i := 0; i < len(c.header); i += 2 {
		r.Header.Set(c.header[i], c.header[i+1])
	}
	var gone sync.WaitGroup
	gone.Go(func() {
		if res, err := s.client.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	})
	s.Gate.Await(t)
	leave()
	wait.Until(t, "the end of the connection", gone.Wait)
	wait.Receive(t, "a client that left", s.left)
}

// over waits for the end of the newest turn.
func (s *service) over(t *testing.T) {
	t.Helper()
	var from eventlog.From
	if err := s.Pool.QueryRow(t.Context(), "SELECT session_id, start_seq - 1, created_at FROM turns ORDER BY created_at DESC LIMIT 1").Scan(&from.Session, &from.Seq, &from.Since); err != nil {
		t.Fatal(err)
	}
	for evs, err := range s.EventLog.Follow(t.Context(), from) {
		if err != nil {
			t.Fatal(err)
		}
		if evs[len(evs)-1].Kind == event.KindDone {
			return
		}
	}
}

// Two people whose client names no chat say the same: whoever comes again has not said what the
// other has. An Idempotency-Key tells them apart.
func TestRetriesInChatsWithoutAName(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	again := []string{"X-Stainless-Retry-Count", "1"}
	for _, c := range []call{{path: completions, body: said(held)}, {path: responses, body: `{"model":"demo","input":` + quote(held) + `}`}} {
		for _, key := range [][]string{nil, {"Idempotency-Key", c.path}} {
			c.header = key
			s.lose(t, c)
			s.Gate.Leave <- struct{}{}
			s.Gate.Leave <- struct{}{}
			r := s.get(t, call{path: c.path, body: c.body, header: append(again, key...)})
			found := r.header.Get("Idempotent-Replayed") == "true"
			if r.status != 200 || found != (key != nil) {
				t.Errorf("%s %v: %d %v %s", c.path, key, r.status, r.header, r.text)
			}
			if found {
				wait.Receive(t, "the unused opening", s.Gate.Leave) // which nobody took
			} else {
				s.Gate.Await(t)
			}
		}
	}
	if _, _, turns := s.questions(t); turns != 6 {
		t.Errorf("%d turns", turns)
	}
}

// What another chat or another key has sent in the same words is not found, nor what was sent
// long ago, nor is a request that is no retry one.
func TestWhatIsNoRetry(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	again := []string{"X-Stainless-Retry-Count", "1"}
	first := call{path: completions, body: said("count to 2"), header: []string{"X-Session-Id", "a"}}
	s.get(t, first)
	old := call{path: completions, body: said("count to 3"), header: again}
	s.get(t, old)
	if _, err := s.Pool.Exec(t.Context(), "UPDATE turns SET created_at = created_at - interval '11 minutes' WHERE session_id IN (SELECT id FROM sessions WHERE caller_id IS NULL)"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]call{
		"another chat":  {path: completions, body: first.body, header: append([]string{"X-Session-Id", "b"}, again...)},
		"an unnamed":    {path: completions, body: first.body, header: again},
		"another key":   {path: completions, body: first.body, header: append(first.header, again...), key: s.Issue(t, s.Workspace, apikey.All...)},
		"long ago":      old,
		"not a retry":   {path: completions, body: first.body, header: []string{"X-Session-Id", "a", "X-Stainless-Retry-Count", "0"}},
		"answered":      {path: completions, body: first.body, header: append(first.header, again...)},
		"other content": {path: completions, body: said("count to 4"), header: append(first.header, again...)},
	} {
		if r := s.get(t, c); r.status != 200 || r.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s: %d %s", name, r.status, r.text)
		}
	}
	if _, _, turns := s.questions(t); turns != 9 {
		t.Errorf("%d turns", turns)
	}
}

// A long conversation does not end a chat, of which only the last message counts.
func TestLongConversations(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	long := func(n int, path, name string) reply {
		turn := `{"role":"assistant","content":"` + strings.Repeat("x", 1000) + `"},`
		return s.get(t, call{path: path, body: `{"model":"demo","` + name + `":[` + strings.Repeat(turn, n) + `{"role":"user","content":"count to 2"}]}`})
	}
	for path, name := range map[string]string{completions: "messages", responses: "input"} {
		if r := long(2_000, path, name); r.status != 200 {
			t.Errorf("%s: %d %s", path, r.status, r.text)
		}
		if r := long(9_000, path, name); r.status != 413 || !strings.Contains(r.text, "8388608") {
			t.Errorf("%s: %d %s", path, r.status, r.text)
		}
	}
}

// A server that stops while it waits for an answer says so in words of OpenAI's clients, and lets
// those of them come again whose request can be known again.
func TestStoppedServerAsksForARetry(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	count := []string{"X-Stainless-Retry-Count", "0"}
	calls := []call{
		{path: completions, body: said(held), header: count},
		{path: completions, body: said(held)},
		{path: completions, body: said(held, `"user":"u"`), header: count},
		{path: responses, body: `{"model":"demo","input":` + quote(held) + `}`, header: count},
		{path: completions, body: said(held), header: []string{"Idempotency-Key", "k"}},
		{path: completions, body: said(held), header: []string{"X-Session-Id", "v"}},
	}
	answers := make([]reply, len(calls))
	var all sync.WaitGroup
	for i, c := range calls {
		all.Go(func() { answers[i] = s.get(t, c) })
		s.Gate.Await(t)
	}
	s.Halt()
	wait.Until(t, "all goroutines", all.Wait)
	for i, r := range answers {
		retry, on, again := "false", "send `continue` with \\\"session_id\\\":", "/events . This chat has no name, so this request sent again is another message."
		switch i {
		case 2, 5:
			on, again = "send `continue` in this chat", "X-Stainless-Retry-Count: 1"
		case 4:
			again = "with its Idempotency-Key"
		}
		if i == 2 || i == 4 {
			retry = "true"
		}
		if r.status != 503 || r.code != "UNAVAILABLE" || r.header.Get("X-Should-Retry") != retry || r.header.Get("Retry-After") == "" ||
			!strings.Contains(r.text, "The message was taken") || !strings.Contains(r.text, on) || !strings.Contains(r.text, again) {
			t.Errorf("%s %v: %d %v %s", calls[i].body, calls[i].header, r.status, r.header, r.text)
		}
	}
	for range calls {
		s.Gate.Leave <- struct{}{}
	}
}
