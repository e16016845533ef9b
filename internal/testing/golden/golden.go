// Package golden contains conversations as the log stores them, each with its encoding in every
// protocol: a file of testdata is one conversation. The tests of the protocols compare their
// encoders with it; with -update they write their output.
package golden

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
)

var update = flag.Bool("update", false, "write what is made of the transcripts")

// testdata is the directory of the transcripts, beside this file.
var testdata = func() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "testdata")
}()

// The ids of every conversation.
var (
	Session = uuid.MustParse("0197a0d2-0000-7000-8000-000000000001")
	Turn    = uuid.MustParse("0197a0d2-0000-7000-8000-000000000002")
)

// Conversation is the rows of one turn.
type Conversation struct {
	Name string
	Says string // the subject of the conversation
	Rows []Row
	// Attached are files that came with the message.
	Attached []event.File
	// Rejected are rejected files of the message, as the turn stores them; nil: none.
	Rejected json.RawMessage
}

// OwnTools returns the names of the tools that the message brought along: those that the caller is
// asked to run.
func (c Conversation) OwnTools() map[string]bool {
	own := make(map[string]bool)
	for _, r := range c.Rows {
		if q, ok := r.Body.(event.ToolRequired); ok {
			for _, call := range q.Calls {
				own[call.Tool] = true
			}
		}
	}
	return own
}

// Row is an event with its body.
type Row struct {
	event.Event
	Body   event.Body
	Leaves bool // the reader disconnects after it, and reconnects when it is answered
}

// Section is the encoding of a conversation in one protocol.
type Section struct{ Name, Text string }

// All returns all conversations.
func All(t *testing.T) (list []Conversation) {
	t.Helper()
	for _, file := range files(t) {
		head, sections := read(t, file)
		list = append(list, conversation(t, file, head, sections[0]))
	}
	return list
}

func files(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(testdata + "/*.txtar")
	if err != nil || len(list) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	return list
}

// Check compares a protocol's encoding of every conversation with its sections: those whose names
// begin with one of the protocol's own words.
func Check(t *testing.T, own []string, tell func(*testing.T, Conversation) []Section) {
	t.Helper()
	for _, file := range files(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			head, sections := read(t, file)
			made := tell(t, conversation(t, file, head, sections[0]))
			mine := func(s Section) bool {
				word, _, _ := strings.Cut(s.Name, " ")
				return slices.Contains(own, word)
			}
			if *update {
				write(t, file, head, append(slices.DeleteFunc(sections, mine), made...))
				return
			}
			for _, s := range made {
				if !slices.Contains(sections, s) {
					t.Errorf("the encoding differs; -update writes this:\n-- %s --\n%s", s.Name, s.Text)
				}
			}
			for _, s := range sections {
				if mine(s) && !slices.ContainsFunc(made, func(m Section) bool { return m.Name == s.Name }) {
					t.Errorf("%q is not encoded anymore", s.Name)
				}
			}
		})
	}
}

// read parses a file.
func read(t *testing.T, file string) (head string, sections []Section) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		name, ok := strings.CutPrefix(line, "-- ")
		if name, whole := strings.CutSuffix(name, " --\n"); ok && whole {
			sections = append(sections, Section{Name: name})
		} else if n := len(sections); n > 0 {
			sections[n-1].Text += line
		} else {
			head += line
		}
	}
	if len(sections) == 0 || sections[0].Name != "rows" {
		t.Fatalf("%s does not begin with rows", file)
	}
	return head, sections
}

func write(t *testing.T, file, head string, sections []Section) {
	t.Helper()
	rank := func(s Section) string { // so that the order of the writers does not matter
		word, _, _ := strings.Cut(s.Name, " ")
		return word
	}
	slices.SortStableFunc(sections[1:], func(a, b Section) int { return strings.Compare(rank(a), rank(b)) })
	var out strings.Builder
	out.WriteString(head)
	for _, s := range sections {
		fmt.Fprintf(&out, "-- %s --\n%s", s.Name, s.Text)
	}
	if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// conversation parses rows: a kind and its data. The reader disconnects after a row that begins
// with "?". "attached" and "rejected" are not rows of the log.
func conversation(t *testing.T, file, head string, rows Section) Conversation {
	t.Helper()
	c := Conversation{Name: strings.TrimSuffix(filepath.Base(file), ".txtar"), Says: strings.TrimSpace(strings.TrimPrefix(head, "#"))}
	for line := range strings.Lines(rows.Text) {
		line, leaves := strings.CutPrefix(strings.TrimSpace(line), "? ")
		kind, data, _ := strings.Cut(line, " ")
		switch kind {
		case "attached":
			if err := json.Unmarshal([]byte(data), &c.Attached); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			continue
		case "rejected":
			c.Rejected = json.RawMessage(data)
			continue
		}
		body, err := event.Decode(event.Kind(kind), []byte(data))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		seq := int64(len(c.Rows) + 1)
		c.Rows = append(c.Rows, Row{event.Event{Seq: seq, Session: Session, Turn: Turn, At: time.Unix(1_760_000_000+seq, 0).UTC(),
			Kind: event.Kind(kind), Data: []byte(data)}, body, leaves})
	}
	return c
}
