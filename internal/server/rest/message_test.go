package rest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/wait"
)

// answer is the body of a blocking call.
type answer struct {
	Success    bool
	Output     *string
	SessionID  string `json:"session_id"`
	References []struct{ Path, Source string }
	Error      *string

	ErrorMessage string `json:"error_message"`
}

func (s *service) ask(t testing.TB, message string, header ...string) (answer, reply) {
	t.Helper()
	r := s.get(t, call{method: "POST", path: "messages", body: message, header: header})
	var a answer
	if err := json.Unmarshal([]byte(r.text), &a); err != nil || r.status != 200 {
		t.Fatalf("%d %s: %v", r.status, r.text, err)
	}
	return a, r
}

func TestStreamedAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.Gate.Leave <- struct{}{}
	frames := s.say(t, held).rest()
	if got := names(frames); got != "open text tool_use tool_result text usage done" {
		t.Errorf("%s", got)
	}
	id := sessionOf(t, frames[0])
	if want := fmt.Sprintf(`{"session_id":%q}`, id); frames[0].data != want || frames[0].retry != 2000 {
		t.Errorf("open %+v, want %s", frames[0], want)
	}
	last := frames[len(frames)-1]
	if want := fmt.Sprintf(`{"v":1,"session_id":%q}`, id); last.data != want || last.retry != 60000 {
		t.Errorf("done %+v, want %s", last, want)
	}
	for i := 1; i < len(frames); i++ {
		if seq(t, frames[i]) <= seq(t, frames[i-1]) {
			t.Errorf("id %s after %s", frames[i].id, frames[i-1].id)
		}
	}
}

func seq(t testing.TB, f frame) (n int64) {
	t.Helper()
	if _, err := fmt.Sscan(f.id, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestBlockingAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	a, r := s.ask(t, body(t, "@say 3 words", `"stream":false`, `"caller_id":"anna"`))
	if !a.Success || a.Output == nil || *a.Output == "" || a.Error != nil || uuid.Validate(a.SessionID) != nil {
		t.Errorf("%s", r.text)
	}
	if !strings.Contains(r.text, `"agent":"default","agent_version":1`) {
		t.Errorf("the answer has no agent: %s", r.text)
	}
	for _, absent := range []string{"references", "structured_result", "attachments", "rejected_attachments"} {
		if strings.Contains(r.text, absent) {
			t.Errorf("%s in %s", absent, r.text)
		}
	}
	failed, r := s.ask(t, body(t, "@text 2 deltas\n@error content_refused", `"stream":false`, `"caller_id":"anna"`))
	if failed.Success || failed.Output != nil || failed.Error == nil || *failed.Error != "content_refused" || failed.SessionID != a.SessionID {
		t.Errorf("%s", r.text)
	}
	if !strings.HasPrefix(r.text, `{"success":false,"output":null,"session_id":"`) {
		t.Errorf("null members are missing: %s", r.text)
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	a, r := s.ask(t, body(t, "@call look {\"at\":\"b\"} look {\"at\":\"a\"}\n@call look {\"at\":\"b\"}\n@text 1 delta", `"stream":false`))
	if len(a.References) != 2 || a.References[0].Path != "b" || a.References[1].Path != "a" || a.References[0].Source != "read" {
		t.Errorf("%s", r.text)
	}
	frames := s.say(t, "@call look {\"at\":\"b\"}").rest()
	for _, f := range frames {
		if strings.Contains(f.data, "source") || f.event == "reference" {
			t.Errorf("a reference in the stream: %+v", f)
		}
	}
}

func TestConversationContinues(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first, _ := s.ask(t, body(t, "@text 1 delta", `"stream":false`))
	byID, _ := s.ask(t, body(t, "@text 1 delta", `"stream":false`, `"session_id":"`+first.SessionID+`"`))
	fresh, _ := s.ask(t, body(t, "@text 1 delta", `"stream":false`))
	anna, _ := s.ask(t, body(t, "@text 1 delta", `"stream":false`, `"caller_id":"anna"`))
	again, _ := s.ask(t, body(t, "@text 1 delta", `"stream":false`, `"caller_id":"anna"`))
	both, _ := s.ask(t, body(t, "@text 1 delta", `"stream":false`, `"caller_id":"anna"`, `"session_id":"`+first.SessionID+`"`))
	if byID.SessionID != first.SessionID || fresh.SessionID == first.SessionID || anna.SessionID == first.SessionID ||
		again.SessionID != anna.SessionID || both.SessionID != first.SessionID {
		t.Errorf("sessions %s, %s, %s, %s, %s, %s", first.SessionID, byID.SessionID, fresh.SessionID, anna.SessionID, again.SessionID,
			both.SessionID)
	}
}

func TestOneTurnAtATime(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	st := s.say(t, held, `"caller_id":"anna"`)
	id := sessionOf(t, st.until("open")[0])
	s.Gate.Await(t)
	forged := []string{"X-Forwarded-Proto", "https", "X-Forwarded-Host", "evil.example", "Forwarded", "proto=https;host=evil.example"}
	r := s.get(t, call{method: "POST", path: "messages", body: body(t, "@text 1 delta", `"caller_id":"anna"`), header: forged})
	at := s.URL + "/api/v1/workspaces/demo/sessions/" + id
	if r.status != 409 || r.Error.Code != "TURN_IN_PROGRESS" || r.Error.Type != "conflict_error" ||
		r.Error.Turn["events_url"] != at+"/events" || r.Error.Turn["cancel_url"] != at+"/cancel" || r.Error.Turn["status"] != "running" {
		t.Errorf("%d %s", r.status, r.text)
	}
	s.Gate.Leave <- struct{}{}
	st.rest()
	if a, _ := s.ask(t, body(t, "@text 1 delta", `"caller_id":"anna"`, `"stream":false`)); a.SessionID != id {
		t.Errorf("afterwards %+v", a)
	}
}

func TestFirstCallsOfOneCallerMakeOneSession(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	var mu sync.Mutex
	sessions, statuses := make(map[string]bool), make(map[int]int)
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			r := s.get(t, call{method: "POST", path: "messages", body: body(t, "@text 1 delta", `"caller_id":"anna"`, `"stream":false`)})
			var a answer
			_ = json.Unmarshal([]byte(r.text), &a)
			mu.Lock()
			defer mu.Unlock()
			if statuses[r.status]++; r.status == 200 {
				sessions[a.SessionID] = true
			}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
	if len(sessions) != 1 || statuses[200]+statuses[409] != 12 {
		t.Errorf("%d sessions, answers %v", len(sessions), statuses)
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	message := body(t, "@text 2 deltas", `"stream":false`)
	first, r := s.ask(t, message, "Idempotency-Key", "order 17")
	if r.header.Get("Idempotent-Replayed") != "" {
		t.Error("the first is a repeat")
	}
	again, rr := s.ask(t, message, "Idempotency-Key", "order 17")
	if rr.header.Get("Idempotent-Replayed") != "true" || rr.text != r.text || again.SessionID != first.SessionID {
		t.Errorf("%s, then %s", r.text, rr.text)
	}
	reused := s.get(t, call{method: "POST", path: "messages", body: body(t, "another"), header: []string{"Idempotency-Key", "order 17"}})
	if reused.status != 422 || reused.Error.Code != "IDEMPOTENCY_KEY_REUSED" || reused.Error.Type != "idempotency_error" {
		t.Errorf("%d %s", reused.status, reused.text)
	}
	if _, err := s.pool.Exec(t.Context(), `UPDATE idempotency_keys SET created_at = now() - interval '25 hours'`); err != nil {
		t.Fatal(err)
	}
	later, rr := s.ask(t, body(t, "another", `"stream":false`), "Idempotency-Key", "order 17")
	if rr.header.Get("Idempotent-Replayed") != "" || later.SessionID == first.SessionID {
		t.Errorf("a day later: %s", rr.text)
	}
	for _, bad := range []string{" ", "é", strings.Repeat("x", 256), "a\tb"} {
		r := s.get(t, call{method: "POST", path: "messages", body: message, header: []string{"Idempotency-Key", bad}})
		if bad == " " { // removed by trimming
			continue
		}
		if r.status != 400 || len(r.Error.Violations) != 1 || r.Error.Violations[0].Param != "/Idempotency-Key" {
			t.Errorf("%q: %d %s", bad, r.status, r.text)
		}
	}
}

// TestRepeatedStreamIsTheSame checks that a repeated request gets the same turn's stream, from its
// first frame.
func TestRepeatedStreamIsTheSame(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := call{method: "POST", path: "messages", body: body(t, held), header: []string{"Idempotency-Key", "k"}}
	one := s.open(t, c)
	seen := one.until("tool_use")
	two := s.open(t, c)
	if two.res.Header.Get("Idempotent-Replayed") != "true" {
		t.Error("not marked as a repeat")
	}
	s.Gate.Leave <- struct{}{}
	all := append(seen, one.rest()...)
	if got := two.rest(); !slices.Equal(got, all) {
		t.Errorf("got %v, want %v", got, all)
	}
	if got := s.open(t, c).rest(); !slices.Equal(got, all) {
		t.Errorf("after the end %v, want %v", got, all)
	}
}

// TestPostAgainWithACursor checks clients that repeat their POST after every disconnect, with the
// last id: they receive the rest, and never start a second turn.
func TestPostAgainWithACursor(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	message := body(t, held, `"caller_id":"anna"`)
	post := func(id string) *stream {
		return s.open(t, call{method: "POST", path: "messages", body: message, header: []string{"Last-Event-ID", id}})
	}
	first := s.say(t, held, `"caller_id":"anna"`)
	seen := first.until("tool_use")
	cursor := seen[len(seen)-1].id
	first.close()

	second := post(cursor)
	s.Gate.Leave <- struct{}{}
	rest := second.rest()
	if rest[0].event != "open" || rest[0].id != cursor || names(rest) != "open tool_result text usage done" {
		t.Errorf("%v", rest)
	}
	last := rest[len(rest)-1]
	if end := post(last.id).rest(); names(end) != "open done" || end[0].id != last.id || end[1].id != last.id {
		t.Errorf("with everything seen: %v", end)
	}
	before, err := strconv.Atoi(seen[0].id)
	if err != nil {
		t.Fatal(err)
	}
	other := s.Issue(t, s.Workspace, apikey.All...)
	for _, bad := range []string{"999999999", "x", "01", "-1", strconv.Itoa(before - 1), "another key's " + cursor} {
		key := ""
		if id, ok := strings.CutPrefix(bad, "another key's "); ok {
			bad, key = id, other
		}
		r := s.get(t, call{method: "POST", path: "messages", key: key, body: message, header: []string{"Last-Event-ID", bad}})
		if r.status != 400 || r.Error.Code != "INVALID_CURSOR" || r.Error.Param != "Last-Event-ID" {
			t.Errorf("%s: %d %s", bad, r.status, r.text)
		}
	}
	var list []struct {
		MessageCount int `json:"message_count"`
	}
	if err := json.Unmarshal(s.get(t, call{path: "sessions"}).Data, &list); err != nil || len(list) != 1 || list[0].MessageCount != 2 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestLimitsAreLowered(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	call := "@call look {\"at\":\"a\"}\n@call look {\"at\":\"b\"}\n@text 1 delta"
	a, r := s.ask(t, body(t, call, `"stream":false`, `"limits":{"max_turns":1}`))
	if a.Success || *a.Error != "max_turns_exceeded" {
		t.Errorf("%s", r.text)
	}
	if a, r := s.ask(t, body(t, call, `"stream":false`, `"limits":{"max_turns":200,"max_response_seconds":3.6e3}`)); !a.Success {
		t.Errorf("%s", r.text)
	}
	frames := s.say(t, "@wait 1h", `"limits":{"max_response_seconds":1}`).rest()
	if names(frames) != "open error done" || !strings.Contains(frames[1].data, `"code":"timed_out"`) {
		t.Errorf("%v", frames)
	}
}

// TestHostileText checks how text that databases or terminals cannot handle is stored and sent.
func TestHostileText(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for name, message := range map[string]string{
		"NUL":             `{"command":"a\u0000b","stream":false}`,
		"half a pair":     `{"command":"a\ud800b","stream":false}`,
		"the other half":  `{"command":"\udc00","stream":false}`,
		"a pair":          `{"command":"\ud83d\ude00","stream":false}`,
		"separators":      `{"command":"x\u2028\u2029\u0085\r\n\t","stream":false,"caller_id":"\u2028"}`,
		"directions":      `{"command":"\u202egnp.exe","stream":false}`,
		"a frame":         `{"command":"x\n\nevent: done\ndata: {}\n\n","stream":false}`,
		"a caller's name": `{"command":"x","caller_id":"'; DROP TABLE sessions; --","stream":false}`,
		"full length":     body(t, strings.Repeat("é", 200_000), `"stream":false`),
	} {
		if a, r := s.ask(t, message); a.SessionID == "" {
			t.Errorf("%s: %s", name, r.text)
		}
	}
	for _, text := range []string{"@hostile", "@unicode"} {
		if got := names(s.say(t, text).rest()); got != "open text usage done" {
			t.Errorf("%s: %s", text, got)
		}
	}
	if r := s.get(t, call{path: "sessions?limit=100"}); r.status != 200 || !strings.Contains(r.text, "a\uFFFDb") {
		t.Errorf("%d %s", r.status, r.text)
	}
}
