package a2a

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/golden"
)

// TestTranscripts encodes every conversation in both versions, as frames and as the final task;
// structured answers also for clients that accept only text, or only JSON.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	golden.Check(t, []string{"a2a"}, func(t *testing.T, c golden.Conversation) (made []golden.Section) {
		for _, v := range []version{v10, v03} {
			name := fmt.Sprintf("a2a %s", v)
			frames, task := tell(t, c, v, everything)
			made = append(made, golden.Section{Name: name, Text: frames}, golden.Section{Name: name + " task", Text: task})
			if strings.HasPrefix(c.Says, "in a schema") {
				_, texts := tell(t, c, v, modes{text: true})
				_, data := tell(t, c, v, modes{json: true})
				made = append(made, golden.Section{Name: name + " task in texts", Text: texts}, golden.Section{Name: name + " task in JSON", Text: data})
			}
		}
		return made
	})
}

// tell encodes a conversation in one version: the frames, and the final task.
func tell(t *testing.T, c golden.Conversation, v version, m modes) (stream, last string) {
	t.Helper()
	const base = "https://parley.example"
	evs := events(c)
	var asked event.Message
	if err := json.Unmarshal(evs[0].Data, &asked); err != nil {
		t.Fatal(err)
	}
	of := session.View{Turn: session.Turn{ID: golden.Turn, SessionID: golden.Session}, Asked: session.Message{Named: "the client's own", Content: &asked.Content}}
	p := project(base, m, golden.Session, golden.Turn, historyOf(base, of, c.Attached, -1))
	var out bytes.Buffer
	for i, ev := range evs {
		frames, err := p.apply(ev)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames {
			f.waits = f.waits && !hasEvents(evs[i+1:], golden.Turn)
			fmt.Fprintf(&out, "%d %s\n", f.id, line(t, v.frame(f)))
		}
	}
	return out.String(), fmt.Sprintf("%s\n", line(t, v.task(p.snapshot())))
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
		p := project("", everything, golden.Session, golden.Turn, nil)
		for _, ev := range evs {
			frames, err := p.apply(ev)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range frames {
				whole, ids = append(whole, string(line(t, f.update))), append(ids, f.id)
				if last := i == len(frames)-1; (f.id == ev.Seq) != last || !last && f.id != 0 {
					t.Errorf("%s: frame %d of event %d has the id %d", c.Name, i, ev.Seq, f.id)
				}
			}
		}
		for at, id := range ids {
			if id == 0 {
				continue
			}
			p, got := project("", everything, golden.Session, golden.Turn, nil), []string(nil)
			for _, ev := range evs {
				frames, err := p.apply(ev)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range frames {
					if ev.Seq > id {
						got = append(got, string(line(t, f.update)))
					}
				}
			}
			if strings.Join(got, "\n") != strings.Join(whole[at+1:], "\n") {
				t.Errorf("%s: after %d\n%s", c.Name, id, strings.Join(got, "\n"))
			}
		}
	}
}

var everything = modes{true, true}
