package openai_test

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
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestRetriesFindTheirTurn checks that a retried request finds the turn that it started, both while
// the turn runs and after it ended, until the client has received the whole answer. After that the
// same text is a new message.
func TestRetriesFindTheirTurn(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	replayed := func(name string, r apitest.Reply) {
		t.Helper()
		if r.Status != 200 || r.Err != nil || r.Header.Get("Idempotent-Replayed") != "true" || strings.Count(r.Text, "0.") == 0 {
			t.Errorf("%s: %d %v %v %s", name, r.Status, r.Err, r.Header, r.Text)
		}
	}
	want := 1
	for name, c := range map[string]apitest.Call{
		"a chat named in its body": {Path: apitest.CompletionsPath, Body: apitest.Completion(apitest.HeldCommand, `"user":"u"`)},
		"a chat named by a header": {Path: apitest.CompletionsPath, Body: apitest.Completion(apitest.HeldCommand),
			Header: []string{"X-Session-Id", "h"}},
		"a response": {Path: apitest.ResponsesPath, Body: `{"model":"demo","conversation":"r","input":` +
			apitest.Quote(apitest.HeldCommand) + `}`},
		"a response that follows": {Path: apitest.ResponsesPath, Body: `{"model":"demo","previous_response_id":` + apitest.Quote(s.Get(t,
			apitest.Call{Path: apitest.ResponsesPath, Body: `{"model":"demo","input":"count to 2"}`}).Body["id"].(string)) + `,"input":` +
			apitest.Quote(apitest.HeldCommand) + `}`},
	} {
		body := c.Body
		for _, way := range []string{`,"stream":true}`, `,"stream":false}`} {
			c.Body = strings.TrimSuffix(body, "}") + way
			retry := apitest.Call{Path: c.Path, Body: c.Body, Header: append(c.Header, "X-Stainless-Retry-Count", "1")}
			s.lose(t, c)
			s.Gate.Leave <- struct{}{}
			s.over(t)
			replayed(name+way, s.Get(t, retry))
			s.Gate.Leave <- struct{}{}
			if r := s.Get(t, retry); r.Status != 200 || r.Header.Get("Idempotent-Replayed") != "" {
				t.Errorf("%s%s: the same text after a complete answer gets the old answer: %s", name, way, r.Text)
			}
			s.Gate.Await(t)
			want += 2
		}
		c.Body = strings.TrimSuffix(body, "}") + `,"stream":true}`
		s.lose(t, c)
		running := s.Do(t, apitest.Call{Path: c.Path, Body: c.Body, Header: append(c.Header, "X-Stainless-Retry-Count", "1")})
		s.Gate.Leave <- struct{}{}
		replayed(name, apitest.ReadReply(running))
		want++
	}
	if _, _, turns := s.questions(t); turns != want {
		t.Errorf("%d turns, want %d", turns, want)
	}
}

// lose sends a message that waits at the gate, and disconnects.
func (s *service) lose(t *testing.T, c apitest.Call) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+c.Path, strings.NewReader(c.Body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer " + s.Key}, "Content-Type": {"application/json"}}
	for i := 0; i < len(c.Header); i += 2 {
		r.Header.Set(c.Header[i], c.Header[i+1])
	}
	var gone sync.WaitGroup
	gone.Go(func() {
		if res, err := s.Client.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	})
	s.Gate.Await(t)
	leave()
	wait.Until(t, "the end of the connection", gone.Wait)
	wait.Receive(t, "a client that left", s.Left)
}

// over waits for the end of the newest turn.
func (s *service) over(t *testing.T) {
	t.Helper()
	var from eventlog.From
	if err := s.Pool.QueryRow(t.Context(), "SELECT session_id, start_seq - 1, created_at FROM turns ORDER BY created_at DESC LIMIT 1").Scan(
		&from.Session, &from.Seq, &from.Since); err != nil {
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

// TestRetriesInChatsWithoutAName checks clients that do not name their chat: a retry of one user
// must not find the turn of another who sent the same text. An Idempotency-Key separates them.
func TestRetriesInChatsWithoutAName(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	again := []string{"X-Stainless-Retry-Count", "1"}
	for _, c := range []apitest.Call{{Path: apitest.CompletionsPath, Body: apitest.Completion(apitest.HeldCommand)},
		{Path: apitest.ResponsesPath, Body: `{"model":"demo","input":` + apitest.Quote(apitest.HeldCommand) + `}`}} {
		for _, key := range [][]string{nil, {"Idempotency-Key", c.Path}} {
			c.Header = key
			s.lose(t, c)
			s.Gate.Leave <- struct{}{}
			s.Gate.Leave <- struct{}{}
			r := s.Get(t, apitest.Call{Path: c.Path, Body: c.Body, Header: append(again, key...)})
			found := r.Header.Get("Idempotent-Replayed") == "true"
			if r.Status != 200 || found != (key != nil) {
				t.Errorf("%s %v: %d %v %s", c.Path, key, r.Status, r.Header, r.Text)
			}
			if found {
				wait.Receive(t, "the unused opening", s.Gate.Leave) // not used by any turn
			} else {
				s.Gate.Await(t)
			}
		}
	}
	if _, _, turns := s.questions(t); turns != 6 {
		t.Errorf("%d turns", turns)
	}
}

// TestWhatIsNoRetry checks that a retry finds neither turns of another chat or key with the same
// text nor turns that are too old, and that a request that is not a retry finds none.
func TestWhatIsNoRetry(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	again := []string{"X-Stainless-Retry-Count", "1"}
	first := apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("count to 2"), Header: []string{"X-Session-Id", "a"}}
	s.Get(t, first)
	old := apitest.Call{Path: apitest.CompletionsPath, Body: apitest.Completion("count to 3"), Header: again}
	s.Get(t, old)
	if _, err := s.Pool.Exec(t.Context(), "UPDATE turns SET created_at = created_at - interval '11 minutes' WHERE session_id IN (SELECT "+
		"id FROM sessions WHERE caller_id IS NULL)"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]apitest.Call{
		"another chat": {Path: apitest.CompletionsPath, Body: first.Body, Header: append([]string{"X-Session-Id", "b"}, again...)},
		"an unnamed":   {Path: apitest.CompletionsPath, Body: first.Body, Header: again},
		"another key": {Path: apitest.CompletionsPath, Body: first.Body, Header: append(first.Header, again...),
			Key: s.Issue(t, s.Workspace, apikey.All...)},
		"long ago":      old,
		"not a retry":   {Path: apitest.CompletionsPath, Body: first.Body, Header: []string{"X-Session-Id", "a", "X-Stainless-Retry-Count", "0"}},
		"answered":      {Path: apitest.CompletionsPath, Body: first.Body, Header: append(first.Header, again...)},
		"other content": {Path: apitest.CompletionsPath, Body: apitest.Completion("count to 4"), Header: append(first.Header, again...)},
	} {
		if r := s.Get(t, c); r.Status != 200 || r.Header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s: %d %s", name, r.Status, r.Text)
		}
	}
	if _, _, turns := s.questions(t); turns != 9 {
		t.Errorf("%d turns", turns)
	}
}

// TestLongConversations checks that a chat continues when its conversation is long: only the last
// message counts.
func TestLongConversations(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	long := func(n int, path, name string) apitest.Reply {
		turn := `{"role":"assistant","content":"` + strings.Repeat("x", 1000) + `"},`
		return s.Get(t, apitest.Call{Path: path, Body: `{"model":"demo","` + name + `":[` + strings.Repeat(turn,
			n) + `{"role":"user","content":"count to 2"}]}`})
	}
	for path, name := range map[string]string{apitest.CompletionsPath: "messages", apitest.ResponsesPath: "input"} {
		if r := long(2_000, path, name); r.Status != 200 {
			t.Errorf("%s: %d %s", path, r.Status, r.Text)
		}
		if r := long(9_000, path, name); r.Status != 413 || !strings.Contains(r.Text, "8388608") {
			t.Errorf("%s: %d %s", path, r.Status, r.Text)
		}
	}
}

// TestStoppedServerAsksForARetry checks that a server that stops reports it in OpenAI's format to
// waiting calls, and asks those clients to retry whose request it can recognize again.
func TestStoppedServerAsksForARetry(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	count := []string{"X-Stainless-Retry-Count", "0"}
	calls := []apitest.Call{
		{Path: apitest.CompletionsPath, Body: apitest.Completion(apitest.HeldCommand), Header: count},
		{Path: apitest.CompletionsPath, Body: apitest.Completion(apitest.HeldCommand)},
		{Path: apitest.CompletionsPath, Body: apitest.Completion(apitest.HeldCommand, `"user":"u"`), Header: count},
		{Path: apitest.ResponsesPath, Body: `{"model":"demo","input":` + apitest.Quote(apitest.HeldCommand) + `}`, Header: count},
		{Path: apitest.CompletionsPath, Body: apitest.Completion(apitest.HeldCommand), Header: []string{"Idempotency-Key", "k"}},
		{Path: apitest.CompletionsPath, Body: apitest.Completion(apitest.HeldCommand), Header: []string{"X-Session-Id", "v"}},
	}
	answers := make([]apitest.Reply, len(calls))
	var all sync.WaitGroup
	for i, c := range calls {
		all.Go(func() { answers[i] = s.Get(t, c) })
		s.Gate.Await(t)
	}
	s.Halt()
	wait.Until(t, "all goroutines", all.Wait)
	for i, r := range answers {
		retry, on, again := "false", "send `continue` with \\\"session_id\\\":",
			"/events . This chat has no name, so this request sent again is another message."
		switch i {
		case 2, 5:
			on, again = "send `continue` in this chat", "X-Stainless-Retry-Count: 1"
		case 4:
			again = "with its Idempotency-Key"
		}
		if i == 2 || i == 4 {
			retry = "true"
		}
		if r.Status != 503 || r.Code != "UNAVAILABLE" || r.Header.Get("X-Should-Retry") != retry || r.Header.Get("Retry-After") == "" ||
			!strings.Contains(r.Text, "The message was accepted") || !strings.Contains(r.Text, on) || !strings.Contains(r.Text, again) {
			t.Errorf("%s %v: %d %v %s", calls[i].Body, calls[i].Header, r.Status, r.Header, r.Text)
		}
	}
	for range calls {
		s.Gate.Leave <- struct{}{}
	}
}
