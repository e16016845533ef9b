package a2a_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

func TestAStreamIsATask(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		frames := c.stream("@say Hello, you.").rest()
		if got := outline(frames); got != "task:SUBMITTED WORKING answer COMPLETED" {
			t.Errorf("%s", got)
		}
		if heard(frames) != "Hello, you." {
			t.Errorf("%q", heard(frames))
		}
		last, chunk := frames[len(frames)-1], frames[len(frames)-2]
		if !chunk.art.LastChunk || !chunk.art.Append || last.stat.Final != (c.v == "0.3") || last.stat.Metadata["usage"] == nil {
			t.Errorf("%s %s", chunk.text, last.text)
		}
		seq := int64(0)
		for _, f := range frames {
			n, err := strconv.ParseInt(f.id, 10, 64)
			if err != nil || n < seq {
				t.Errorf("id %s after %d", f.id, seq)
			}
			seq = n
		}
	})
}

// TestAReaderWhoComesBackMissesNothing checks that a reader that resumes after any frame receives
// the rest of the stream exactly once, while the task runs and after its end.
func TestAReaderWhoComesBackMissesNothing(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		s := c.stream("@text 3 deltas\n@call read {}\n@text 3 deltas")
		var early []frame
		for len(early) == 0 || early[len(early)-1].kind != "status" || !strings.Contains(early[len(early)-1].text, "tool_use") {
			f, ok := s.next()
			if !ok {
				t.Fatal("no tool is used")
			}
			early = append(early, f)
		}
		c.Gate.Await(t)
		id := early[0].task.ID
		var live [][]frame
		var back []*stream
		for _, f := range early {
			back = append(back, c.resume(id, f.id))
		}
		fresh := c.resume(id, "")
		c.Gate.Leave <- struct{}{}
		whole := append(early, s.rest()...)
		for _, b := range back {
			live = append(live, b.rest())
		}
		for i, f := range whole {
			var rest []frame
			if i < len(live) {
				rest = live[i]
			} else if i == len(whole)-1 {
				c.with("Last-Event-ID", f.id).refused(-32004, c.name("SubscribeToTask", "tasks/resubscribe"), fmt.Sprintf(`{"id":%q}`, id))
				continue
			} else {
				rest = c.resume(id, f.id).rest()
			}
			if rest[0].kind != "task" || rest[0].id != f.id || rest[0].task.said("answer") != heard(whole[:i+1]) {
				t.Errorf("after %d: %s", i, rest[0].text)
			}
			j := i + 1
			if whole[i].id == whole[max(i-1, 0)].id && i > 0 { // it has no id of its own: the frames of its event are sent again
				j--
			}
			if got, want := outline(rest[1:]), outline(whole[j:]); got != want || heard(append(whole[:j:j], rest[1:]...)) != heard(whole) {
				t.Errorf("after %d: %s, want %s", i, got, want)
			}
		}
		if frames := fresh.rest(); frames[0].task.state() != "TASK_STATE_WORKING" || heard(frames) != heard(whole) {
			t.Errorf("%s: %q", outline(frames), heard(frames))
		}
		c.refused(-32004, c.name("SubscribeToTask", "tasks/resubscribe"), fmt.Sprintf(`{"id":%q}`, id))
		for _, cursor := range []string{"1", "x", "-1", "99999999", "07"} {
			c.with("Last-Event-ID", cursor).refused(-32602, c.name("SubscribeToTask", "tasks/resubscribe"), fmt.Sprintf(`{"id":%q}`, id))
		}
	})
}

func TestAStreamAsks(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		s := c.stream(asking)
		frames := s.until("INPUT_REQUIRED")
		last := frames[len(frames)-1]
		if last.stat.Final != (c.v == "0.3") || !strings.Contains(last.text, `"kind":"approval"`) {
			t.Errorf("%s", last.text)
		}
		id := frames[0].task.ID
		answer := c.params(unique(), data(`{"decision":"allow"}`), "", fmt.Sprintf(`"taskId":%q`, id))
		rest := c.open(c.name("SendStreamingMessage", "message/stream"), answer).rest()
		if rest[0].kind != "task" || rest[0].task.ID != id || !strings.HasSuffix(outline(rest), "answer COMPLETED") ||
			!strings.HasSuffix(heard(rest), "It is done.") {
			t.Errorf("%s: %q", outline(rest), heard(rest))
		}
		again := c.open(c.name("SendStreamingMessage", "message/stream"), answer).rest()
		if again[0].kind != "task" || !strings.HasSuffix(outline(again), "COMPLETED") || heard(again) != heard(rest) ||
			again[len(again)-1].stat.Final != (c.v == "0.3") {
			t.Errorf("%s: %q", outline(again), heard(again))
		}
		others := s.rest()
		if c.v == "0.3" {
			if len(others) != 0 {
				t.Errorf("after the final frame: %s", outline(others))
			}
		} else if !strings.HasSuffix(outline(others), "WORKING answer COMPLETED") {
			t.Errorf("%s", outline(others))
		}
	})
}

func TestCancelIsIdempotentAndForOneTask(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		s := c.stream(held)
		first := s.until("WORKING")[0].task
		c.Gate.Await(t)
		id := unique()
		behind := func(conf string) *task {
			return c.read(c.ask(c.name("SendMessage", "message/send"), c.params(id, text("@say I come next."), conf,
				fmt.Sprintf(`"contextId":%q`, first.ContextID), `"metadata":{"multitask_strategy":"enqueue"}`)))
		}
		next := behind(c.atOnce())
		if next.state() != "TASK_STATE_SUBMITTED" {
			t.Errorf("%+v", next)
		}
		cancel := c.name("CancelTask", "tasks/cancel")
		for range 3 {
			got := c.read(c.ask(cancel, fmt.Sprintf(`{"id":%q}`, first.ID)))
			if got.state() != "TASK_STATE_CANCELED" || !strings.Contains(string(got.Metadata["error"]), "canceled") {
				t.Errorf("%+v", got)
			}
		}
		if frames := s.rest(); !strings.HasSuffix(outline(frames), "CANCELED") {
			t.Errorf("%s", outline(frames))
		}
		end := behind("")
		if end.state() != "TASK_STATE_COMPLETED" || end.said("answer") != "I come next." {
			t.Errorf("%+v", end)
		}
		if e := c.refused(-32002, cancel, fmt.Sprintf(`{"id":%q}`, next.ID)); !strings.Contains(string(e.Data),
			c.name(`"TASK_STATE_COMPLETED"`, `"completed"`)) {
			t.Errorf("%s", e.Data)
		}
		lined := c.stream(held)
		c.Gate.Await(t)
		at := lined.until("WORKING")[0].task
		wait := c.read(c.ask(c.name("SendMessage", "message/send"), c.params(unique(), text("@say Never."), c.atOnce(),
			fmt.Sprintf(`"contextId":%q`, at.ContextID), `"metadata":{"multitask_strategy":"enqueue"}`)))
		if got := c.read(c.ask(cancel, fmt.Sprintf(`{"id":%q}`, wait.ID))); got.state() != "TASK_STATE_CANCELED" {
			t.Errorf("%+v", got)
		}
		c.Gate.Leave <- struct{}{}
		if frames := lined.rest(); !strings.HasSuffix(outline(frames), "answer COMPLETED") {
			t.Errorf("%s", outline(frames))
		}
	})
}

// TestWhoAsksForAStreamIsRefusedInOne checks that clients of 0.3, which parse nothing else, get
// errors in a stream, and that clients of 1.0 get them directly.
func TestWhoAsksForAStreamIsRefusedInOne(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		only := c.with("Accept", c.name("text/event-stream", "*/*, text/event-stream")) // like the Python client
		for method, params := range map[string]string{
			c.name("SubscribeToTask", "tasks/resubscribe"): `{"id":"0197a0b4-7c3e-7cc0-8a3a-2f6f0f1b7f10"}`,
			c.name("SendStreamingMessage", "message/stream"): c.params(unique(), text("@say Hi."), "",
				`"taskId":"0197a0b4-7c3e-7cc0-8a3a-2f6f0f1b7f10"`),
		} {
			c.refused(-32001, method, params)
			c.with("Accept", "application/json, text/event-stream").refused(-32001, method, params)
			if c.v == "1.0" {
				only.refused(-32001, method, params)
				continue
			}
			if frames := only.open(method, params).rest(); len(frames) != 1 || frames[0].err == nil || frames[0].err.Code != -32001 ||
				frames[0].err.Data == nil {
				t.Errorf("%s: %s", method, outline(frames))
			}
		}
	})
}
