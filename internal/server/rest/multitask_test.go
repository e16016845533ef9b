package rest_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestEnqueuedMessagesAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first := s.say(t, held)
	id := sessionOf(t, first.until("open")[0])
	s.Gate.Await(t)
	at := `"session_id":"` + id + `"`
	var waiting []*stream
	for i := range 8 {
		strategy := `"multitask_strategy":"enqueue"`
		waiting = append(waiting, s.say(t, "@say Answer "+string(rune('A'+i)), at, strategy))
	}
	for _, st := range waiting {
		if got := sessionOf(t, st.until("open")[0]); got != id {
			t.Fatalf("session %s", got)
		}
	}
	ninth := call{method: "POST", path: "messages", body: body(t, "too many", at, `"multitask_strategy":"enqueue"`)}
	if r := s.get(t, ninth); r.status != 429 || r.Error.Code != "QUEUE_FULL" {
		t.Errorf("%d %s", r.status, r.text)
	}
	if r := s.get(t, call{method: "POST", path: "messages", body: body(t, "no", at)}); r.status != 409 ||
		r.Error.Code != "TURN_IN_PROGRESS" || r.Error.Turn["status"] != "running" {
		t.Errorf("%d %s", r.status, r.text)
	}
	resumed := s.open(t, call{path: "sessions/" + id + "/events"})
	s.Gate.Leave <- struct{}{}
	if got := names(resumed.rest()); got != "open text tool_use tool_result text usage done" {
		t.Errorf("an attached reader sees %s", got)
	}
	if got := names(first.rest()); got != "text tool_use tool_result text usage done" {
		t.Errorf("the first stream is %s", got)
	}
	for i, st := range waiting {
		rest := st.rest()
		text := ""
		for _, f := range rest {
			if f.event == "text" {
				text += f.data
			}
		}
		if names(rest) != "text usage done" || !strings.Contains(text, string(rune('A'+i))) {
			t.Errorf("stream %d is %s %s", i, names(rest), text)
		}
	}
	messages, _ := s.pages(t, "sessions/"+id+"/messages?limit=100")
	var order string
	for _, m := range messages {
		if m.Role == "assistant" {
			order += strings.TrimSpace(*m.Content)[len(strings.TrimSpace(*m.Content))-1:]
		}
	}
	if !strings.HasSuffix(order, "ABCDEFGH") || len(messages) != 18 {
		t.Errorf("%d messages in the order %s", len(messages), order)
	}
}

func TestInterruptEndsWhatIsThere(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first := s.say(t, held)
	id := sessionOf(t, first.until("tool_use")[0])
	s.Gate.Await(t)
	at := `"session_id":"` + id + `"`
	lined := s.say(t, "@text 1 delta", at, `"multitask_strategy":"enqueue"`)
	last := s.say(t, "@text 1 delta", at, `"multitask_strategy":"interrupt"`)
	for _, st := range []*stream{first, lined} {
		rest := st.rest()
		if got := names(rest); !strings.HasSuffix(got, "error done") || !strings.Contains(rest[len(rest)-2].data, `"code":"canceled"`) {
			t.Errorf("an interrupted stream is %s", got)
		}
	}
	if got := names(last.rest()); got != "open text usage done" {
		t.Errorf("the newest stream is %s", got)
	}
	if got := names(s.say(t, "@text 1 delta", at, `"multitask_strategy":"interrupt"`).rest()); got != "open text usage done" {
		t.Errorf("with nothing to interrupt: %s", got)
	}
}

// TestCancelEndsWhatIsLinedUp checks that canceling a session also cancels its queued messages: a
// second cancel finds nothing.
func TestCancelEndsWhatIsLinedUp(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first := s.say(t, held)
	id := sessionOf(t, first.until("tool_use")[0])
	next := s.say(t, "@text 1 delta", `"session_id":"`+id+`"`, `"multitask_strategy":"enqueue"`)
	cancel := call{method: "POST", path: "sessions/" + id + "/cancel"}
	if r := s.get(t, cancel); !strings.Contains(r.text, `"canceled":true`) {
		t.Errorf("%s", r.text)
	}
	if r := s.get(t, cancel); !strings.Contains(r.text, `"reason":"not_in_progress"`) {
		t.Errorf("again: %s", r.text)
	}
	if got := names(next.rest()); got != "open error done" {
		t.Errorf("the next stream is %s", got)
	}
}

// TestResumeInLine checks that a client that loses its connection while its message is queued
// resumes with the answer to its own message, not to the one before.
func TestResumeInLine(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first := s.say(t, held)
	id := sessionOf(t, first.until("tool_use")[0])
	s.Gate.Await(t)
	lined := s.say(t, "@say Mine.", `"session_id":"`+id+`"`, `"multitask_strategy":"enqueue"`)
	open := lined.until("open")[0]
	lined.close()
	last := s.say(t, "@text 1 delta", `"session_id":"`+id+`"`, `"multitask_strategy":"enqueue"`)
	last.until("open")
	resumed := s.open(t, events(id, "", "Last-Event-ID", open.id))
	if got := resumed.until("open")[0]; got.id != open.id {
		t.Errorf("it continues from %s, not from %s", got.id, open.id)
	}
	messages, _ := s.pages(t, "sessions/"+id+"/messages?limit=100")
	if m := messages[3]; m.Status != "in_progress" || fmt.Sprint(m.LastSeq) != open.id {
		t.Errorf("the answer to the queued message is %+v", m)
	}
	s.Gate.Leave <- struct{}{}
	first.rest()
	rest := resumed.rest()
	if names(rest) != "text usage done" || !strings.Contains(rest[0].data, "Mine.") {
		t.Errorf("resumed: %v", rest)
	}
	last.rest()
}
