package dialect_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/agui"
	"github.com/parley-server/parley/internal/dialect"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/openaiapi"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/uistream"
)

var update = flag.Bool("update", false, "write the transcripts in testdata")

const (
	theSession = "0197a0d2-0000-7000-8000-000000000001"
	theTurn    = "0197a0d2-0000-7000-8000-000000000002"
)

// TestTranscripts tells one conversation in every dialect. The rows of a turn are given as they
// are stored; behind a row that begins with "?" the reader leaves, answers and comes back.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, rows := rowsOf(t, string(data))
			var out strings.Builder
			out.WriteString(head)
			for i, reading := range readings(t, rows) {
				tell(t, &out, fmt.Sprint(i+1), reading, strings.Contains(head, "# in a schema"))
			}
			if *update {
				if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if out.String() != string(data) {
				t.Errorf("it is told differently; -update writes this:\n%s", out.String())
			}
		})
	}
}

// rowsOf cuts a transcript: what is kept of it, and the rows in it.
func rowsOf(t *testing.T, text string) (head string, rows []string) {
	t.Helper()
	before, rest, ok := strings.Cut(text, "-- rows --\n")
	if !ok {
		t.Fatal("no rows")
	}
	list, _, _ := strings.Cut(rest, "-- ")
	return before + "-- rows --\n" + list, strings.Split(strings.TrimSpace(list), "\n")
}

// reading is what one stream is given.
type reading struct {
	dialect.Reading
	rows []dialect.Row
}

func readings(t *testing.T, lines []string) (list []reading) {
	t.Helper()
	base := dialect.Reading{Turn: uuid.MustParse(theTurn), From: session.From{Session: uuid.MustParse(theSession)}}
	if data, ok := strings.CutPrefix(lines[0], "rejected "); ok {
		if err := json.Unmarshal([]byte(data), &base.Rejected); err != nil {
			t.Fatal(err)
		}
		lines = lines[1:]
	}
	now := reading{Reading: base}
	for _, line := range lines {
		line, pending := strings.CutPrefix(line, "? ")
		kind, data, _ := strings.Cut(line, " ")
		body, err := event.Decode(event.Kind(kind), []byte(data))
		if err != nil || body == nil {
			t.Fatalf("%s: %v", line, err)
		}
		now.rows = append(now.rows, dialect.Row{At: time.Unix(1_760_000_000, 0).UTC(), Body: body, Pending: pending})
		if !pending {
			continue
		}
		list = append(list, now)
		next := reading{Reading: base}
		next.After = body.(event.InputRequired).ApprovalID
		for _, row := range now.rows {
			row.Seen, row.Pending = true, false
			next.rows = append(next.rows, row)
		}
		now = next
	}
	return append(list, now)
}

// tell writes a reading down in every dialect.
func tell(t *testing.T, out *strings.Builder, n string, rd reading, structured bool) {
	t.Helper()
	const base = "https://parley.example"
	about := openaiapi.About{ID: "chatcmpl-" + theTurn, Model: "demo", Created: 1_760_000_000, Session: rd.Session(), Usage: true, Structured: structured, Base: base}
	if rd.After == uuid.Nil {
		about.Rejected = rd.Rejected
	}
	openai, responses := openaiapi.NewTelling(about), about
	responses.ID = "resp_" + theTurn
	for _, d := range []struct {
		name string
		p    dialect.Projection
	}{
		{"openai", openai},
		{"responses", openaiapi.NewResponding(responses, openaiapi.Thread{})},
		{"ui", uistream.NewTelling(rd.Reading, base)},
		{"ag-ui", agui.NewTelling(agui.About{Thread: "thread", Run: "run-" + n, Versioned: true, Base: base}, rd.Reading)},
	} {
		fmt.Fprintf(out, "-- %s %s --\n", d.name, n)
		write(t, out, d.p.Begin())
		for _, row := range rd.rows {
			frames := d.p.Row(row)
			if row.Seen && len(frames) > 0 {
				t.Errorf("%s tells again what was seen: %v", d.name, frames)
			}
			write(t, out, frames)
		}
	}
	status, answer := openai.Completion()
	whole, err := json.MarshalIndent(answer, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(out, "-- openai in one piece %s: %d --\n%s\n", n, status, whole)
}

func write(t *testing.T, out *strings.Builder, frames []any) {
	t.Helper()
	for _, f := range frames {
		data, err := dialect.Encode(f)
		if err != nil || bytes.ContainsAny(data, "\r\n") {
			t.Fatalf("%s: %v", data, err)
		}
		if named, ok := f.(dialect.Named); ok && !bytes.Contains(data, []byte(`"type":"`+named.Event()+`"`)) {
			t.Errorf("%s is called %s", data, named.Event())
		}
		fmt.Fprintf(out, "%s\n", data)
	}
}
