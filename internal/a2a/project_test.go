package a2a

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
)

var updating = flag.Bool("update", false, "rewrite the golden transcripts")

// TestTranscripts holds the frames of whole conversations against those in testdata. Each
// file has the events as rows of "seq kind data", and what each version makes of them.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			head, rest, _ := strings.Cut(string(text), "-- events --\n")
			rows, want, _ := strings.Cut(rest, "-- ")
			want = "-- " + want
			m := modes{text: !strings.Contains(head, "no text"), json: !strings.Contains(head, "no json")}
			got := transcript(t, rows, v10, m) + transcript(t, rows, v03, m)
			if *updating {
				if err := os.WriteFile(path, []byte(head+"-- events --\n"+rows+got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != want {
				t.Errorf("got\n%s\nwant\n%s\nrun go test ./internal/a2a -run TestTranscripts -update", got, want)
			}
		})
	}
}

var (
	turnID    = uuid.MustParse("0197a0b4-7c3e-7cc0-8a3a-000000000001")
	contextID = uuid.MustParse("0197a0b4-7c3e-7cc0-8a3a-000000000002")
	askedID   = uuid.MustParse("0197a0b4-7c3e-7cc0-8a3a-000000000003")
)

// events reads rows.
func events(t *testing.T, rows string) []event.Event {
	t.Helper()
	var evs []event.Event
	for line := range strings.Lines(rows) {
		seq, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		kind, data, ok := strings.Cut(rest, " ")
		n, err := strconv.ParseInt(seq, 10, 64)
		if err != nil || !ok || !json.Valid([]byte(data)) {
			t.Fatalf("%q: %v", line, err)
		}
		evs = append(evs, event.Event{Seq: n, Session: contextID, Turn: turnID, At: time.Unix(1767225600+n, 0), Kind: event.Kind(kind), Data: []byte(data)})
	}
	return evs
}

// transcript is what one version makes of rows: the frames, then the task.
func transcript(t *testing.T, rows string, v version, m modes) string {
	t.Helper()
	p := project("https://parley.example", m, contextID, turnID,
		[]message{{MessageID: askedID.String(), ContextID: contextID, TaskID: turnID, Role: user, Parts: []part{textPart("Do it.")}}})
	var out bytes.Buffer
	fmt.Fprintf(&out, "-- %s --\n", v)
	evs := events(t, rows)
	for i, ev := range evs {
		frames, err := p.apply(ev)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames {
			f.waits = f.waits && !goes(evs[i+1:], turnID)
			fmt.Fprintf(&out, "%d %s\n", f.id, line(t, v.frame(f)))
		}
	}
	fmt.Fprintf(&out, "-- %s task --\n%s\n", v, line(t, v.task(p.snapshot())))
	return out.String()
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

// Whoever comes back after any frame that has an id gets all the others, whatever the
// projection was told before: it is a function of the events alone.
func TestFramesFollowFromTheEvents(t *testing.T) {
	t.Parallel()
	paths, _ := filepath.Glob("testdata/*.txtar")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "-- events --\n")
		rows, _, _ := strings.Cut(rest, "-- ")
		evs := events(t, rows)
		var whole []string
		var ids []int64
		p := project("", everything, contextID, turnID, nil)
		for _, ev := range evs {
			frames, err := p.apply(ev)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range frames {
				whole, ids = append(whole, string(line(t, f.update))), append(ids, f.id)
				if last := i == len(frames)-1; (f.id == ev.Seq) != last || !last && f.id != 0 {
					t.Errorf("%s: frame %d of event %d has the id %d", path, i, ev.Seq, f.id)
				}
			}
		}
		for at, id := range ids {
			if id == 0 {
				continue
			}
			p, got := project("", everything, contextID, turnID, nil), []string(nil)
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
				t.Errorf("%s: after %d\n%s", path, id, strings.Join(got, "\n"))
			}
		}
	}
}

var everything = modes{true, true}
