package rest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

// expire moves the ends of a session's finished turns out of the replay window.
func (s *service) expire(t testing.TB, id string) {
	t.Helper()
	s.exec(t, `UPDATE turns SET finished_at = now() - interval '25 hours' WHERE session_id = $1 AND finished_at IS NOT NULL`, id)
}

func (s *service) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// isGone checks that a stream has only the error session_gone.
func isGone(t testing.TB, what, cursor string, got []frame) {
	t.Helper()
	if names(got) != "open error done" || got[1].id != cursor || got[2].id != cursor || got[2].retry != 60000 ||
		!strings.Contains(got[1].data, `"code":"session_gone"`) || !strings.Contains(got[1].data, `"recoverable":false`) {
		t.Errorf("%s: %v", what, got)
	}
}

// TestAReplayEndsWithTheWindow checks that a turn is replayed for 24 hours after its end and no
// longer, even if its rows are still stored.
func TestAReplayEndsWithTheWindow(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	one := s.say(t, "@text 2 deltas", `"caller_id":"anna"`).rest()
	id, first := sessionOf(t, one[0]), one[len(one)-1].id
	s.expire(t, id)
	two := s.say(t, "@text 2 deltas", `"caller_id":"anna"`).rest()
	second := two[len(two)-1].id
	replay := func(cursor string) []frame {
		return s.open(t, events(id, "?replay=all", "Last-Event-ID", cursor)).rest()
	}

	isGone(t, "from the beginning", "0", replay("0"))
	isGone(t, "without a cursor", "0", s.open(t, events(id, "?replay=all")).rest())
	isGone(t, "before the end of the first turn", one[len(one)-2].id, replay(one[len(one)-2].id))
	if got := replay(first); !slices.Equal(got[1:len(got)-1], two[1:len(two)-1]) {
		t.Errorf("the second turn: %v", got)
	}
	for _, cursor := range []string{"", "0", one[0].id, first} {
		if got := s.open(t, events(id, "", "Last-Event-ID", cursor)).rest(); names(got) != "open done" {
			t.Errorf("nothing runs, after %q: %v", cursor, got)
		}
	}

	s.expire(t, id)
	isGone(t, "the second turn", first, replay(first))
	if got := replay(second); names(got) != "open done" {
		t.Errorf("with nothing missed: %v", got)
	}
	running := s.say(t, held, `"caller_id":"anna"`)
	running.until("open")
	s.Gate.Await(t)
	isGone(t, "while a turn runs", first, replay(first))
	isGone(t, "the turn between the cursor and the one that runs", first, s.open(t, events(id, "", "Last-Event-ID", first)).rest())
	live := []*stream{s.open(t, events(id, "", "Last-Event-ID", second)), s.open(t, events(id, "?replay=all", "Last-Event-ID", second))}
	s.Gate.Leave <- struct{}{}
	rest := running.rest()
	for _, st := range live {
		if got := names(st.rest()); got != "open text tool_use tool_result text usage done" {
			t.Errorf("the turn that runs: %s", got)
		}
	}
	dbtest.Tamper(t, s.pool, `DELETE FROM events WHERE delta AND session_id = $1`, id)
	var contents []string
	for _, m := range messages(t, s, id) {
		contents = append(contents, m.Content)
	}
	if len(contents) != 6 || !strings.HasPrefix(contents[1], "0") || !strings.HasPrefix(contents[5], "0") || names(rest) == "" {
		t.Errorf("the history: %q", contents)
	}
}

func messages(t testing.TB, s *service, id string) (list []struct {
	Content, Status string
	Erased          bool
}) {
	t.Helper()
	r := s.get(t, call{path: "sessions/" + id + "/messages"})
	decode(t, r.Data, &list)
	return list
}

// TestARepeatedRequestOutlivesItsEvents checks that a repeated request whose events have been
// deleted returns its original response; its stream is no longer available.
func TestARepeatedRequestOutlivesItsEvents(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ask := func(key, stream string) call {
		return call{method: "POST", path: "messages", body: body(t, "@text 3 deltas", `"stream":`+stream),
			header: []string{"Idempotency-Key", key}}
	}
	whole := s.get(t, ask("a", "false"))
	frames := s.open(t, ask("b", "true")).rest()
	dbtest.Tamper(t, s.pool, `DELETE FROM events WHERE delta`)
	if again := s.get(t, ask("a", "false")); again.status != 200 || again.text != whole.text {
		t.Errorf("%d %s, it was %s", again.status, again.text, whole.text)
	}
	got := s.open(t, ask("b", "true")).rest()
	isGone(t, "a stream", got[0].id, got)
	if got[0].data != frames[0].data {
		t.Errorf("%v, it was %v", got[0], frames[0])
	}
	last := frames[len(frames)-1].id
	got = s.open(t, call{method: "POST", path: "messages", body: body(t, "@text 3 deltas", `"stream":true`),
		header: []string{"Last-Event-ID", last}}).rest()
	if names(got) != "open done" {
		t.Errorf("with nothing missed: %v", got)
	}
}

// TestAnErasedSessionSaysNothing checks that erasing a session ends its turns and streams on every
// replica, removes all content, and rejects new messages to it.
func TestAnErasedSessionSaysNothing(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(time.Minute))
	other := s.replica(t, asking(time.Minute))
	one := s.say(t, "@text 2 deltas", `"caller_id":"anna"`).rest()
	id := sessionOf(t, one[0])
	running := s.say(t, "@say A word.\n@call gate {}", `"caller_id":"anna"`)
	q := running.asked()
	far := other.open(t, events(id, ""))
	far.asked()
	lined := s.open(t, call{method: "POST", path: "messages", body: body(t, "later", `"caller_id":"anna"`, `"multitask_strategy":"enqueue"`)})

	done, err := s.Sessions.EraseContent(t.Context(), uuid.MustParse(id), "cli:test")
	if err != nil || done.Already || done.Canceled != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	for what, st := range map[string]*stream{"here": running, "there": far, "in the queue": lined} {
		got := st.rest()
		if n := len(got); n < 2 || got[n-2].event != "error" || got[n-1].event != "done" || !strings.Contains(got[n-2].data,
			"canceled") && !strings.Contains(got[n-2].data, "session_gone") {
			t.Errorf("a reader %s: %v", what, got)
		}
	}
	for _, s := range []*service{s, other} {
		for _, query := range []string{"", "?replay=all", "?last_event_id=" + one[2].id, "?replay=all&last_event_id=" + one[2].id} {
			got := s.open(t, events(id, query)).rest()
			isGone(t, "events"+query, got[0].id, got)
			if !strings.Contains(got[1].data, "was erased") {
				t.Errorf("events%s: %s", query, got[1].data)
			}
		}
	}
	feedback := "sessions/" + id + "/turns/" + uuid.NewString() + "/feedback"
	for _, c := range []call{{path: "sessions/" + id + "/context"}, {path: "sessions/" + id + "/context?turn=9"},
		{method: "POST", path: "sessions/" + id + "/fork", body: "{}"},
		{method: "PATCH", path: "sessions/" + id, body: `{"title":"x"}`}, {method: "POST", path: feedback, body: `{"rating":"good"}`},
		{method: "POST", path: "messages", body: body(t, "hello", `"session_id":"`+id+`"`)}} {
		if r := s.get(t, c); r.status != 404 || r.Error.Code != "SESSION_NOT_FOUND" || !strings.Contains(r.Error.Message, "was erased") {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.status, r.text)
		}
	}
	said := messages(t, s, id)
	if len(said) != 6 {
		t.Fatalf("%+v", said)
	}
	for _, m := range said {
		if !m.Erased || m.Content != "" {
			t.Errorf("%+v", m)
		}
	}
	list := s.get(t, call{path: "sessions"})
	if !strings.Contains(list.text, `"erased_at":"`+done.At.UTC().Format("2006-01-02T15:04:05")) || !strings.Contains(list.text,
		`"title":""`) || strings.Contains(list.text, "anna") {
		t.Errorf("%s", list.text)
	}
	if r := s.get(t, call{path: "approvals/" + q.ApprovalID}); !strings.Contains(r.text, `"request":null`) ||
		!strings.Contains(r.text, `"canceled"`) {
		t.Errorf("%s", r.text)
	}
	if _, r := s.decide(t, q.DecideURL, allow); r.status != 409 || r.Error.Code != "APPROVAL_ALREADY_DECIDED" {
		t.Errorf("%s", r.text)
	}
	if r := s.get(t, call{method: "POST", path: "sessions/" + id + "/cancel"}); r.status != 200 ||
		!strings.Contains(r.text, "not_in_progress") {
		t.Errorf("%s", r.text)
	}
	if next := sessionOf(t, s.say(t, "@text 1 delta", `"caller_id":"anna"`).rest()[0]); next == id {
		t.Error("the caller continues in the erased session")
	}
	if again, err := s.Sessions.EraseContent(t.Context(), uuid.MustParse(id), "cli:other"); err != nil ||
		again != (session.Erasure{At: done.At, Already: true}) {
		t.Errorf("%+v, %v", again, err)
	}
	var by string
	if err := s.pool.QueryRow(t.Context(), `SELECT by FROM erasures WHERE session_id = $1`, id).Scan(&by); err != nil || by != "cli:test" {
		t.Errorf("erased by %q, %v", by, err)
	}
	if _, err := s.Sessions.EraseContent(t.Context(), uuid.New(), "cli:test"); err == nil {
		t.Error("erased a session that does not exist")
	}
}
