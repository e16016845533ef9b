package rest_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/testing/dbtest"
)

func events(id, query string, header ...string) call {
	return call{path: "sessions/" + id + "/events" + query, header: header}
}

// TestResumeMissesNothing checks that a reader that disconnects anywhere and resumes with its last
// id receives the same frames as an undisturbed one: each once, in order.
func TestResumeMissesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	whole := s.say(t, "@text 5 deltas\n@call gate {}\n@text 5 deltas")
	id := sessionOf(t, whole.until("open")[0])
	s.Gate.Await(t)
	from := s.open(t, events(id, ""))
	seen := from.until("tool_use")
	var resumed []*stream
	for _, f := range seen {
		resumed = append(resumed, s.open(t, events(id, "", "Last-Event-ID", f.id)))
		resumed = append(resumed, s.open(t, events(id, "?last_event_id="+f.id)))
	}
	s.Gate.Leave <- struct{}{}
	all := append(seen, from.rest()...)
	if got := names(all); got != "open text tool_use tool_result text usage done" {
		t.Fatalf("%s", got)
	}
	for i, st := range resumed {
		cursor, got := seen[i/2].id, st.rest()
		want := all[slices.IndexFunc(all, func(f frame) bool { return f.id == cursor })+1:]
		open := frame{"open", cursor, fmt.Sprintf(`{"session_id":%q,"from_seq":%s}`, id, cursor), 2000}
		if len(got) == 0 || got[0] != open || !slices.Equal(got[1:], want) {
			t.Errorf("after %s: %v, want %v", cursor, got, want)
		}
	}
}

func TestResumeOfARunningTurn(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first := s.say(t, "@text 2 deltas", `"caller_id":"anna"`).rest()
	second := s.say(t, held, `"caller_id":"anna"`)
	open := second.until("open")[0]
	id := sessionOf(t, open)
	s.Gate.Await(t)
	older, ended := first[2].id, first[len(first)-1].id
	for name, c := range map[string]call{
		"no cursor":              events(id, ""),
		"0":                      events(id, "?last_event_id=0"),
		"0 in the header":        events(id, "", "Last-Event-ID", "0"),
		"the end of an old turn": events(id, "", "Last-Event-ID", ended),
		"the turn's open":        events(id, "", "Last-Event-ID", open.id),
	} {
		st := s.open(t, c)
		got := st.until("tool_use")
		want := frame{"open", open.id, fmt.Sprintf(`{"session_id":%q,"from_seq":%s}`, id, open.id), 2000}
		if got[0] != want || names(got) != "open text tool_use" {
			t.Errorf("%s: %v, want %v first", name, got, want)
		}
		st.close()
	}
	all := s.open(t, events(id, "?replay=all"))
	got := all.until("tool_use")
	if names(got) != "open text usage text tool_use" || got[0].id != "0" {
		t.Errorf("replay of everything: %v", got)
	}
	tail := s.open(t, events(id, "?replay=all", "Last-Event-ID", older))
	s.Gate.Leave <- struct{}{}
	end := second.rest()
	last := end[len(end)-1]
	want := frame{"done", last.id, fmt.Sprintf(`{"v":1,"session_id":%q,"resumed":true}`, id), 60000}
	for _, st := range []*stream{all, tail} {
		if rest := st.rest(); rest[len(rest)-1] != want {
			t.Errorf("the end of a replay: %v, want %v", rest, want)
		}
	}
}

// TestResumeAcrossTurns checks a reader that lost its stream in one turn and reconnects in the
// next: it gets every row that it lacks, whether the next turn was sent later or was queued
// meanwhile.
func TestResumeAcrossTurns(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for name, strategy := range map[string]string{"sent later": "reject", "in line": "enqueue"} {
		caller := fmt.Sprintf(`"caller_id":%q`, name)
		first := s.say(t, "@text 2 deltas\n@call gate {}\n@text 2 deltas", caller)
		seen := first.until("tool_use")
		s.Gate.Await(t)
		release := func() { s.Gate.Leave <- struct{}{} }
		if strategy == "reject" {
			release()
			seen = append(seen, first.rest()...)
		}
		second := s.say(t, "@text 1 delta\n@call gate {}", caller, fmt.Sprintf(`"multitask_strategy":%q`, strategy))
		begun := second.until("open")
		third := s.say(t, "@text 1 delta", caller, `"multitask_strategy":"enqueue"`) // its rows are not part of this stream
		third.until("open")
		if strategy == "enqueue" {
			release()
			seen = append(seen, first.rest()...)
		}
		s.Gate.Await(t)
		begun = append(begun, second.until("tool_use")...)
		id := sessionOf(t, seen[0])
		var resumed []*stream
		for _, f := range seen[:len(seen)-1] {
			resumed = append(resumed, s.open(t, events(id, "", "Last-Event-ID", f.id)))
		}
		release()
		all := append(seen[:len(seen)-1:len(seen)-1], append(begun, second.rest()...)...) // without the done between
		slices.SortStableFunc(all, func(a, b frame) int { return int(number(t, a.id) - number(t, b.id)) })
		for i, st := range resumed {
			cursor, got := seen[i].id, st.rest()
			want := all[slices.IndexFunc(all, func(f frame) bool { return f.id == cursor })+1:]
			open := frame{"open", cursor, fmt.Sprintf(`{"session_id":%q,"from_seq":%s}`, id, cursor), 2000}
			if len(got) == 0 || got[0] != open || !slices.Equal(got[1:], want) {
				t.Errorf("%s, after %s: %v, want %v", name, cursor, got, want)
			}
		}
		third.rest()
	}
}

// TestResumeInLineWithReplay queues a message behind another turn. Its reader resumes with the id
// of its open frame and replay=all before, while and after its turn runs, and never gets a row of
// the other turn.
func TestResumeInLineWithReplay(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first := s.say(t, "@text 2 deltas\n@call gate {}\n@text 2 deltas", `"caller_id":"anna"`)
	s.Gate.Await(t)
	first.until("tool_use")
	second := s.say(t, "@text 1 delta\n@call gate {}\n@text 3 deltas", `"caller_id":"anna"`, `"multitask_strategy":"enqueue"`)
	open := second.until("open")[0]
	resume := func() *stream {
		return s.open(t, events(sessionOf(t, open), "?replay=all", "Last-Event-ID", open.id))
	}
	resumed := map[string]*stream{"in line": resume()}
	s.Gate.Leave <- struct{}{}
	s.Gate.Await(t)
	want := second.until("tool_use")
	resumed["running"] = resume()
	s.Gate.Leave <- struct{}{}
	want = append(want, second.rest()...)
	resumed["ended"] = resume()
	first.rest()
	for name, st := range resumed {
		got := st.rest()
		if n := len(got); n < 2 || got[0].id != open.id || !slices.Equal(got[1:n-1], want[:len(want)-1]) || got[n-1].event != "done" {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func number(t *testing.T, id string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestResumeOfWhatIsOver(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	one := s.say(t, "@text 2 deltas", `"caller_id":"anna"`).rest()
	two := s.say(t, "@text 2 deltas", `"caller_id":"anna"`).rest()
	id, last := sessionOf(t, one[0]), two[len(two)-1].id
	ends := func(resumed bool, id, cursor string) []frame {
		return []frame{
			{"open", cursor, fmt.Sprintf(`{"session_id":%q,"from_seq":%s}`, id, cursor), 2000},
			{"done", cursor, fmt.Sprintf(`{"v":1,"session_id":%q,"resumed":%v}`, id, resumed), 60000},
		}
	}
	for cursor, want := range map[string]string{"": last, "0": "0", one[2].id: one[2].id, last: last} {
		c := events(id, "")
		if cursor != "" {
			c = events(id, "", "Last-Event-ID", cursor)
		}
		if got := s.open(t, c).rest(); !slices.Equal(got, ends(false, id, want)) {
			t.Errorf("cursor %q: %v", cursor, got)
		}
	}
	// The missed part: all rows of both turns, one open, one done.
	body := append(slices.Clone(one[1:len(one)-1]), two[1:len(two)-1]...)
	for cut := range len(body) + 1 {
		cursor := "0"
		if cut > 0 {
			cursor = body[cut-1].id
		}
		got := s.open(t, events(id, "?replay=all&last_event_id="+cursor)).rest()
		if n := len(got); n < 2 || got[0].id != cursor || got[0].event != "open" || !slices.Equal(got[1:n-1], body[cut:]) ||
			got[n-1] != (frame{"done", last, fmt.Sprintf(`{"v":1,"session_id":%q,"resumed":true}`, id), 60000}) {
			t.Errorf("after %s: %v", cursor, got)
		}
	}
	if got := s.open(t, events(id, "?replay=all&last_event_id="+last)).rest(); !slices.Equal(got, ends(true, id, last)) {
		t.Errorf("with nothing missed: %v", got)
	}
	if got := s.open(t, events(id, "?replay=all")).rest(); len(got) != len(body)+2 {
		t.Errorf("everything: %v", got)
	}

	var fresh string
	err := s.pool.QueryRow(t.Context(), `INSERT INTO sessions (id, workspace_id) VALUES ($1, $2) RETURNING id`, uuid.New(),
		s.Workspace.ID).Scan(&fresh)
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"", "?replay=all", "?last_event_id=0"} {
		if got := s.open(t, events(fresh, query)).rest(); !slices.Equal(got, ends(false, fresh, "0")) {
			t.Errorf("never started, %q: %v", query, got)
		}
	}
}

// TestCursorFromTheFuture checks a cursor that this session cannot have given out: it is never
// clamped silently, and no frame repeats it, since every id is that of a stored row.
func TestCursorFromTheFuture(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	done := s.say(t, "@text 1 delta").rest()
	over := sessionOf(t, done[0])
	running := s.say(t, held)
	begun := running.until("open")[0]
	live := sessionOf(t, begun)
	s.Gate.Await(t)
	last := make(map[string]string) // the last row of a reader that has missed nothing
	for _, id := range []string{over, live} {
		var seq int64
		if err := s.pool.QueryRow(t.Context(), "SELECT max(seq) FROM events WHERE session_id = $1", id).Scan(&seq); err != nil {
			t.Fatal(err)
		}
		if last[id] = strconv.FormatInt(seq, 10); id == live {
			last[id] = begun.id
		}
		for _, query := range []string{"", "?replay=all"} {
			for _, cursor := range []string{"1000000", "9223372036854775807"} {
				got := s.open(t, events(id, query, "Last-Event-ID", cursor)).rest()
				if names(got) != "open error done" || got[0].id != last[id] || got[1].id != last[id] || got[2].id != last[id] ||
					!strings.Contains(got[0].data, `"from_seq":`+last[id]) ||
					!strings.Contains(got[1].data, `"code":"session_gone"`) || !strings.Contains(got[1].data, `"recoverable":false`) ||
					got[2].retry != 60000 {
					t.Errorf("%s%s after %s: %v", id, query, cursor, got)
				}
			}
		}
	}
	next := strconv.FormatInt(seq(t, done[len(done)-1])+1, 10)
	if got := s.open(t, events(over, "", "Last-Event-ID", next)).rest(); names(got) != "open error done" {
		t.Errorf("a cursor past the end: %v", got)
	}
	s.Gate.Leave <- struct{}{}
	running.rest()
}

// TestCursorOfAnotherSession checks cursors of other sessions. All sessions share one sequence, so
// such a cursor can lie between the events of this session, and does not show what the reader has
// seen.
func TestCursorOfAnotherSession(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	long := s.say(t, held, `"caller_id":"anna"`)
	id := sessionOf(t, long.until("open")[0])
	s.Gate.Await(t)
	other := s.say(t, "@text 2 deltas").rest()
	s.Gate.Leave <- struct{}{}
	long.rest()
	streams := map[string]*stream{}
	ask := func(when string, frames []frame) {
		for _, f := range frames {
			for _, query := range []string{"", "?replay=all"} {
				streams[f.id+" "+when+query] = s.open(t, events(id, query, "Last-Event-ID", f.id))
			}
		}
	}
	ask("after the turn", other)
	running := s.say(t, "@call gate {}\n@call gate {}", `"caller_id":"anna"`)
	running.until("open")
	s.Gate.Await(t)
	ask("before the turn that runs", other)
	between := s.say(t, "@text 2 deltas").rest()
	s.Gate.Leave <- struct{}{}
	s.Gate.Await(t)
	ask("within the turn that runs", between)
	s.Gate.Leave <- struct{}{}
	running.rest()
	for name, st := range streams {
		got := st.rest()
		isGone(t, name, got[0].id, got)
		var own bool
		err := s.pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM events WHERE session_id = $1 AND seq = $2)", id,
			seq(t, got[0])).Scan(&own)
		if err != nil || !own {
			t.Errorf("%s: %s is not the id of a row of this session, %v", name, got[0].id, err)
		}
	}
}

// TestEveryIDIsACursor checks that every id from a stream or a list is a valid cursor: of an open
// of any kind, of a message and of the end.
func TestEveryIDIsACursor(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first := s.say(t, "@text 2 deltas", `"caller_id":"anna"`)
	seen := first.rest()
	id := sessionOf(t, seen[0])
	for _, query := range []string{"", "?replay=all", "?last_event_id=0", "?replay=all&last_event_id=" + seen[2].id} {
		seen = append(seen, s.open(t, events(id, query)).rest()...)
	}
	cursors := map[string]bool{}
	for _, f := range seen {
		cursors[f.id] = true
	}
	var list []struct {
		FirstSeq int64 `json:"first_seq"`
		LastSeq  int64 `json:"last_seq"`
	}
	decode(t, s.get(t, call{path: "sessions/" + id + "/messages"}).Data, &list)
	for _, m := range list {
		cursors[strconv.FormatInt(m.FirstSeq, 10)], cursors[strconv.FormatInt(m.LastSeq, 10)] = true, true
	}
	if len(list) != 2 {
		t.Fatalf("%v", cursors)
	}
	// A rejected message names the position before the turn's open event. If sessions write
	// concurrently, that can be the event of another session.
	s.exec(t, `SELECT setval('events_seq_seq', 99)`)
	last := s.say(t, "@text 1 delta", `"caller_id":"anna"`).rest()
	dbtest.Tamper(t, s.pool, `UPDATE events SET seq = 90 WHERE seq = 100`)
	if last[0].id != "101" {
		t.Fatalf("%v", last)
	}
	cursors["100"] = true
	for cursor := range cursors {
		for _, query := range []string{"", "?replay=all"} {
			if got := s.open(t, events(id, query, "Last-Event-ID", cursor)).rest(); strings.Contains(names(got), "error") {
				t.Errorf("after %s%s: %v", cursor, query, got)
			}
		}
	}
}

func TestCursorForms(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := sessionOf(t, s.say(t, "@text 1 delta").rest()[0])
	for _, bad := range []string{
		"00", "01", "-1", "+1", "1.0", "1e3", "0x1", "١", "1_000", "null", "x", "%20", "1%20", "%201", "", "9223372036854775808", "1,2",
		strings.Repeat("1", 10_000), "%00", "%ff",
	} {
		if r := s.get(t, events(id, "?last_event_id="+bad)); r.status != 400 || r.Error.Code != "INVALID_CURSOR" ||
			r.Error.Type != "invalid_request_error" || r.Error.Param != "last_event_id" && r.Error.Param != "query" {
			t.Errorf("query %.40q: %d %.200s", bad, r.status, r.text)
		}
	}
	for _, bad := range []string{"00", "-1", "1.0", "1.5", "12x", "x", "1, 2", "9223372036854775808", "é"} {
		if r := s.get(t, events(id, "?last_event_id=1", "Last-Event-ID", bad)); r.status != 400 || r.Error.Code != "INVALID_CURSOR" ||
			r.Error.Param != "Last-Event-ID" || !strings.Contains(r.Error.Message, "Send a whole number of 63 bits") {
			t.Errorf("header %q: %d %s", bad, r.status, r.text)
		}
	}
	for query, param := range map[string]string{"?last_event_id=1&last_event_id=1": "last_event_id", "?a=%zz": "query",
		"?replay=x;y": "query"} {
		if r := s.get(t, events(id, query)); r.status != 400 || r.Error.Code != "INVALID_CURSOR" || r.Error.Param != param {
			t.Errorf("%s: %d %s", query, r.status, r.text)
		}
	}
	for _, bad := range []string{"?replay=", "?replay=ALL", "?replay=all&replay=all"} {
		if r := s.get(t, events(id, bad)); r.status != 400 || r.Error.Code != "INVALID_REQUEST" || r.Error.Violations[0].Param != "/replay" {
			t.Errorf("%s: %d %s", bad, r.status, r.text)
		}
	}
	// The header takes precedence over the query, which must be a valid cursor nevertheless.
	if got := s.open(t, events(id, "?last_event_id=1", "Last-Event-ID", "2")).rest(); got[0].id != "2" {
		t.Errorf("header and query: %v", got)
	}
	if r := s.get(t, events(id, "?last_event_id=abc", "Last-Event-ID", "2")); r.status != 400 || r.Error.Code != "INVALID_CURSOR" ||
		r.Error.Param != "last_event_id" {
		t.Errorf("header and a bad query: %d %s", r.status, r.text)
	}
}

// TestDroppedRowsAreTold checks that rows dropped by retention are reported as a gap.
func TestDroppedRowsAreTold(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	all := s.say(t, "@text 2 deltas\n@call look {\"at\":\"a\"}\n@text 2 deltas").rest()
	id := sessionOf(t, all[0])
	dbtest.Tamper(t, s.pool, `DELETE FROM events WHERE delta AND session_id = $1`, id)
	got := s.open(t, events(id, "?replay=all&last_event_id="+all[0].id)).rest()
	if n := len(got); n < 3 || got[n-2].event != "error" || !strings.Contains(got[n-2].data, "session_gone") || got[n-1].event != "done" {
		t.Errorf("%v", got)
	}
}
