package dialect_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/parley-server/parley/internal/apikey"
)

// A request that its client sends again finds the turn that it has started, while that goes on
// and when it is over, also in a chat without a name.
func TestRetriesFindTheirTurn(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	again := []string{"X-Stainless-Retry-Count", "1"}
	for name, c := range map[string]call{
		"an unnamed chat":          {path: completions, body: said(held)},
		"a chat named in its body": {path: completions, body: said(held, `"user":"u"`)},
		"a chat named by a header": {path: completions, body: said(held), header: []string{"X-Session-Id", "h"}},
		"a response":               {path: responses, body: `{"model":"demo","input":` + quote(held) + `}`},
	} {
		first := s.do(t, call{path: c.path, body: strings.TrimSuffix(c.body, "}") + `,"stream":true}`, header: c.header})
		<-s.Gate.Entered
		first.Body.Close()
		retry := call{path: c.path, body: strings.TrimSuffix(c.body, "}") + `,"stream":true}`, header: append(c.header, again...)}
		running := s.do(t, retry)
		s.Gate.Leave <- struct{}{}
		frames(t, running)
		over := s.do(t, retry)
		if list, ok := frames(t, over); !ok || !strings.Contains(strings.Join(list, ""), "0.") {
			t.Errorf("%s: %v", name, list)
		}
		for _, r := range []string{running.Header.Get("Idempotent-Replayed"), over.Header.Get("Idempotent-Replayed")} {
			if r != "true" {
				t.Errorf("%s: a retry started another turn", name)
			}
		}
	}
	if _, _, turns := s.questions(t); turns != 4 {
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
		"other content": {path: completions, body: said("count to 4"), header: append(first.header, again...)},
	} {
		if r := s.get(t, c); r.status != 200 || r.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s: %d %s", name, r.status, r.text)
		}
	}
	if _, _, turns := s.questions(t); turns != 8 {
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
	}
	answers := make([]reply, len(calls))
	var all sync.WaitGroup
	for i, c := range calls {
		all.Go(func() { answers[i] = s.get(t, c) })
		<-s.Gate.Entered
	}
	s.Halt()
	all.Wait()
	for i, r := range answers {
		no, named := r.header.Get("X-Should-Retry") == "false", strings.Contains(r.text, "`continue`")
		if r.status != 503 || r.code != "UNAVAILABLE" || no != (i == 1) || named != (i == 2) || r.header.Get("Retry-After") == "" ||
			!strings.Contains(r.text, "The message was taken") || !strings.Contains(r.text, "X-Stainless-Retry-Count: 1") {
			t.Errorf("%s %v: %d %v %s", calls[i].body, calls[i].header, r.status, r.header, r.text)
		}
	}
	for range calls {
		s.Gate.Leave <- struct{}{}
	}
}
