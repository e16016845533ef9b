package rest

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/sse"
	"github.com/parley-server/parley/internal/testing/golden"
)

// TestTranscripts encodes every conversation as its own stream, and as a stream that attaches in
// the middle.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	golden.Check(t, []string{"http"}, func(t *testing.T, c golden.Conversation) (made []golden.Section) {
		from := eventlog.From{Session: golden.Session}
		whole := streamed(t, c, &tail{from: from, turn: golden.Turn})
		from.Seq = int64(len(c.Rows) / 2)
		attached := streamed(t, c, &tail{from: from, turn: golden.Turn, head: &event.Open{SessionID: golden.Session, FromSeq: &from.Seq}})
		return []golden.Section{{Name: "http", Text: whole}, {Name: "http attached", Text: attached}}
	})
}

// page is a response that is only recorded.
type page struct{ *httptest.ResponseRecorder }

func (page) SetWriteDeadline(time.Time) error { return nil }

// streamed returns the stream of a conversation.
func streamed(t *testing.T, c golden.Conversation, of *tail) string {
	t.Helper()
	w := page{httptest.NewRecorder()}
	sw := sse.Open(w, sse.Options{})
	defer sw.Close()
	out := &frames{sw: sw, tail: of, id: of.from.Seq}
	if err := out.Begin(); err != nil {
		t.Fatal(err)
	}
	for _, row := range c.Rows[of.from.Seq:] {
		if err := out.sendBatch([]event.Event{row.Event}); err != nil {
			t.Fatal(err)
		}
	}
	if err := sw.Flush(); err != nil {
		t.Fatal(err)
	}
	return w.Body.String()
}
