package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/agui"
	"github.com/parley-server/parley/internal/server/aisdk"
	"github.com/parley-server/parley/internal/server/openai/chat"
	"github.com/parley-server/parley/internal/server/openai/completions"
	"github.com/parley-server/parley/internal/server/openai/responses"
	"github.com/parley-server/parley/internal/testing/golden"
	"github.com/parley-server/parley/internal/turn"
)

// TestTranscripts encodes every conversation in every dialect.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	golden.Check(t, []string{"openai", "responses", "ui", "ag-ui"}, func(t *testing.T, c golden.Conversation) (made []golden.Section) {
		for i, rd := range readings(t, c) {
			made = append(made, tell(t, strconv.Itoa(i+1), rd)...)
		}
		return made
	})
}

// reading is the input of one stream.
type reading struct {
	server.Reading
	rows []server.Row
}

// readings are the streams of a conversation: a client that stops at a question answers it and
// resumes.
func readings(t *testing.T, c golden.Conversation) (list []reading) {
	t.Helper()
	base := server.Reading{Turn: golden.Turn, From: eventlog.From{Session: golden.Session}, Structured: strings.HasPrefix(c.Says,
		"in a schema")}
	if strings.HasPrefix(c.Says, "a forced call") {
		base.Structured, base.Forced = true, &turn.ForcedTool{Name: "weather", Required: true}
	}
	if c.Rejected != nil {
		if err := json.Unmarshal(c.Rejected, &base.Rejected); err != nil {
			t.Fatal(err)
		}
	}
	base.Own = c.OwnTools()
	now := reading{Reading: base}
	for _, r := range c.Rows {
		now.rows = append(now.rows, server.Row{At: r.At, Body: r.Body, Pending: r.Leaves})
		if !r.Leaves {
			continue
		}
		list = append(list, now)
		next := reading{Reading: base}
		next.After, _ = r.Body.(event.Question).Wait()
		for _, row := range now.rows {
			row.Seen, row.Pending = true, false
			next.rows = append(next.rows, row)
		}
		now = next
	}
	return append(list, now)
}

// tell encodes a reading in every dialect.
func tell(t *testing.T, n string, rd reading) (made []golden.Section) {
	t.Helper()
	const base = "https://parley.example"
	id := rd.Turn.String()
	about := chat.About{ID: "chatcmpl-" + id, Model: "demo", Created: 1_760_000_000, Session: rd.Session(), Usage: true,
		Structured: rd.Structured, Forced: rd.Forced, Turn: rd.Turn, Base: base}
	if rd.After == uuid.Nil {
		about.Rejected = rd.Rejected
	}
	whole, second := completions.NewEncoder(about), about
	second.ID = "resp_" + id
	for _, d := range []struct {
		name string
		p    server.Encoder
	}{
		{"openai", whole},
		{"responses", responses.NewEncoder(second, responses.Thread{})},
		{"ui", aisdk.NewEncoder(rd.Reading, base)},
		{"ag-ui", agui.NewEncoder(agui.About{Thread: "thread", Run: "run-" + n, Versioned: true, Base: base}, rd.Reading)},
	} {
		var out strings.Builder
		write(t, &out, d.p.Begin())
		for _, row := range rd.rows {
			frames := d.p.Row(row)
			if row.Seen && len(frames) > 0 {
				t.Errorf("%s repeats what the client has seen: %v", d.name, frames)
			}
			write(t, &out, frames)
		}
		made = append(made, golden.Section{Name: d.name + " " + n, Text: out.String()})
	}
	status, answer := whole.Completion()
	text, err := json.MarshalIndent(answer, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(made, golden.Section{Name: fmt.Sprintf("openai in one piece %s: %d", n, status), Text: string(text) + "\n"})
}

func write(t *testing.T, out *strings.Builder, frames []any) {
	t.Helper()
	for _, f := range frames {
		data, err := server.EncodeFrame(f)
		if err != nil || bytes.ContainsAny(data, "\r\n") {
			t.Fatalf("%s: %v", data, err)
		}
		if named, ok := f.(server.NamedFrame); ok && !bytes.Contains(data, []byte(`"type":"`+named.Event()+`"`)) {
			t.Errorf("%s is called %s", data, named.Event())
		}
		fmt.Fprintf(out, "%s\n", data)
	}
}
