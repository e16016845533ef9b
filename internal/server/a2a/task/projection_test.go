package task_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server/a2a/task"
	"github.com/parley-server/parley/internal/server/a2a/v03"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/golden"
)

// TestTranscripts encodes every conversation in both versions, as frames and as the final task;
// structured answers also for clients that accept only text, or only JSON.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	golden.Check(t, []string{"a2a"}, func(t *testing.T, c golden.Conversation) (made []golden.Section) {
		for _, v := range []version{{"1.0", task.V10{}}, {"0.3", v03.Encoding{}}} {
			name := "a2a " + v.name
			frames, last := tell(t, c, v, everything)
			made = append(made, golden.Section{Name: name, Text: frames}, golden.Section{Name: name + " task", Text: last})
			if strings.HasPrefix(c.Says, "in a schema") {
				_, texts := tell(t, c, v, task.Modes{Text: true})
				_, data := tell(t, c, v, task.Modes{JSON: true})
				made = append(made, golden.Section{Name: name + " task in texts", Text: texts}, golden.Section{Name: name + " task in JSON",
					Text: data})
			}
		}
		return made
	})
}

// version is a version of the protocol.
type version struct {
	name string
	task.Encoding
}

// tell encodes a conversation in one version: the frames, and the final task.
func tell(t *testing.T, c golden.Conversation, v version, m task.Modes) (stream, last string) {
	t.Helper()
	const base = "https://parley.example"
	evs := events(c)
	var asked event.Message
	if err := json.Unmarshal(evs[0].Data, &asked); err != nil {
		t.Fatal(err)
	}
	of := session.View{Turn: session.Turn{ID: golden.Turn, SessionID: golden.Session}, Asked: session.Message{Named: "the client's own",
		Content: &asked.Content}}
	p := task.NewProjection(base, m, golden.Session.String(), golden.Turn, task.History(base, of, c.Attached, -1))
	var out bytes.Buffer
	for i, ev := range evs {
		frames, err := p.Apply(ev)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames {
			f.Waits = f.Waits && !slices.ContainsFunc(evs[i+1:], func(ev event.Event) bool { return ev.Turn == golden.Turn })
			fmt.Fprintf(&out, "%d %s\n", f.ID, line(t, v.Frame(f)))
		}
	}
	return out.String(), fmt.Sprintf("%s\n", line(t, v.Task(p.Snapshot())))
}

func events(c golden.Conversation) (evs []event.Event) {
	for _, row := range c.Rows {
		evs = append(evs, row.Event)
	}
	return evs
}

func line(t *testing.T, v any) []byte {
	t.Helper()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(buf.Bytes())
}

// TestFramesFollowFromTheEvents checks that a reader that resumes after any frame with an id gets
// all the others, regardless of the projection's earlier input: it is a function of the events
// alone.
func TestFramesFollowFromTheEvents(t *testing.T) {
	t.Parallel()
	for _, c := range golden.All(t) {
		evs := events(c)
		var whole []string
		var ids []int64
		p := task.NewProjection("", everything, golden.Session.String(), golden.Turn, nil)
		for _, ev := range evs {
			frames, err := p.Apply(ev)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range frames {
				whole, ids = append(whole, string(line(t, f.Update))), append(ids, f.ID)
				if last := i == len(frames)-1; (f.ID == ev.Seq) != last || !last && f.ID != 0 {
					t.Errorf("%s: frame %d of event %d has the id %d", c.Name, i, ev.Seq, f.ID)
				}
			}
		}
		for at, id := range ids {
			if id == 0 {
				continue
			}
			p, got := task.NewProjection("", everything, golden.Session.String(), golden.Turn, nil), []string(nil)
			for _, ev := range evs {
				frames, err := p.Apply(ev)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range frames {
					if ev.Seq > id {
						got = append(got, string(line(t, f.Update)))
					}
				}
			}
			if strings.Join(got, "\n") != strings.Join(whole[at+1:], "\n") {
				t.Errorf("%s: after %d\n%s", c.Name, id, strings.Join(got, "\n"))
			}
		}
	}
}

var everything = task.Modes{Text: true, JSON: true}
