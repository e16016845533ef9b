package session_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/sessiontest"
)

// recorder changes a session and keeps the list of messages after each commit, by its newest event.
type recorder struct {
	*world
	s     *sessiontest.Replica
	id    uuid.UUID
	lists map[int64][]session.Message
}

// begin begins a turn in the recorded session, or in a new one.
func (r *recorder) begin(t *testing.T, command string) uuid.UUID {
	t.Helper()
	turn := uuid.Must(uuid.NewV7())
	err := r.s.Open(t.Context(), session.Ref{Workspace: r.Workspace.ID, ID: r.id}, func(tx *session.Tx) error {
		r.id = tx.SessionID()
		_, _, err := tx.Begin(t.Context(), session.NewTurn{ID: turn, Message: event.Message{Content: command}, MaxResponseSeconds: 600,
			MaxTurns: 50, Behind: true})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r.record(t)
	return turn
}

// append appends events to a turn, each in a transaction.
func (r *recorder) append(t *testing.T, turn uuid.UUID, bodies ...event.Body) {
	t.Helper()
	for _, body := range bodies {
		err := r.s.Update(t.Context(), r.id, func(tx *session.Tx) error {
			_, err := tx.Append(t.Context(), turn, body)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		r.record(t)
	}
}

// claim claims the turn that is queued, and end ends it and queues the next one.
func (r *recorder) claim(t *testing.T, turn uuid.UUID) eventlog.Lease {
	t.Helper()
	l := sessiontest.Claim(t, r.s, r.id, turn)
	r.record(t)
	return l
}

func (r *recorder) end(t *testing.T, turn uuid.UUID, e session.Ending) {
	t.Helper()
	err := r.s.Update(t.Context(), r.id, func(tx *session.Tx) error {
		c, err := tx.ReadClosing(t.Context(), session.Turn{ID: turn, SessionID: r.id})
		if err != nil {
			return err
		}
		if ok, err := tx.EndTurn(t.Context(), c, e); err != nil || !ok {
			return fmt.Errorf("the turn did not end: %w", err)
		}
		_, _, err = tx.Next(t.Context())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r.record(t)
}

func (r *recorder) record(t *testing.T) {
	t.Helper()
	head, err := r.s.Head(t.Context(), r.Workspace.ID, r.id)
	if err != nil {
		t.Fatal(err)
	}
	r.lists[head.LastSeq] = r.list(t, r.id, nil)
}

// listOf reads all messages of a session in pages of two.
func (w *world) listOf(t *testing.T, s *sessiontest.Replica, id uuid.UUID, q session.MessageQuery) (all []session.Message) {
	t.Helper()
	for q.Limit = 2; ; {
		page, err := s.Messages(t.Context(), w.Workspace.ID, id, q)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, page.Data...); !page.HasMore {
			return all
		}
		q.Cursor = *page.NextCursor
	}
}

func (r *recorder) list(t *testing.T, id uuid.UUID, asOf *int64) []session.Message {
	t.Helper()
	return r.listOf(t, r.s, id, session.MessageQuery{AsOf: asOf})
}

// recordBusy records a session with two turns that end, one of them lined up behind the other, one that
// is canceled in the line, and one that is in progress.
func recordBusy(t *testing.T) *recorder {
	t.Helper()
	w := newWorld(t)
	r := &recorder{world: w, s: w.Still(t), lists: make(map[int64][]session.Message)}
	first := r.begin(t, "first")
	lease := r.claim(t, first)
	call := event.ToolCall{ID: "t1", Tool: "wiki_read", Input: json.RawMessage(`{}`)}
	r.append(t, first, event.Text{Text: "I "}, event.Text{Text: "look."},
		event.Reply{Text: "I look.", Calls: []event.ToolCall{call}, Usage: event.Usage{InputTokens: 3, OutputTokens: 1, Model: "m"}},
		event.ToolUse{Tool: "wiki_read", Summary: "news", ToolUseID: "t1"})
	second := r.begin(t, "second")
	third := r.begin(t, "third")
	r.append(t, first, event.Reference{Path: "news", Source: "wiki_read"}, event.ToolResult{Tool: "wiki_read", OK: true,
		Output: "All is well.", ToolUseID: "t1"},
		event.Text{Text: event.StepBreak + "All "}, event.Text{Text: "is well."})
	r.end(t, third, session.Ending{Trigger: session.Cancel, Failure: new(event.Canceled.Failure("The turn was canceled.")), Halted: true})
	r.append(t, first, event.Reply{Text: "All is well.", Usage: event.Usage{InputTokens: 5, OutputTokens: 2, Model: "m"}})
	r.end(t, first, session.Ending{Trigger: session.Complete, Epoch: lease.Epoch, Halted: true})
	lease = r.claim(t, second)
	r.append(t, second, event.Text{Text: "Yes."}, event.Reply{Text: "Yes.", Usage: event.Usage{InputTokens: 7, OutputTokens: 1, Model: "m"}})
	r.end(t, second, session.Ending{Trigger: session.Complete, Epoch: lease.Epoch, Halted: true})
	last := r.begin(t, "last")
	r.claim(t, last)
	r.append(t, last, event.Text{Text: "Hm"})
	return r
}

// TestMessagesAsOfEveryEvent compares the list as of each event with the one that a reader had
// after the commit of that event. While a turn is in progress, the text, calls, references and
// usage are those of a model that reads the rows.
func TestMessagesAsOfEveryEvent(t *testing.T) {
	t.Parallel()
	r := recordBusy(t)
	rows := r.s.Rows(t, eventlog.From{Session: r.id})
	for i, row := range rows {
		got := r.list(t, r.id, &row.Seq)
		for j := range got {
			if m := &got[j]; m.Status == "in_progress" {
				checkProgress(t, *m, rows[:i+1])
				m.Content, m.Output, m.ToolCalls, m.References, m.Usage, m.LastSeq = nil, nil, json.RawMessage("[]"), nil, nil, 0
			}
		}
		want, committed := r.lists[row.Seq]
		if !committed {
			continue // rows of one commit: no reader sees some of them only
		}
		for j := range want {
			if want[j].Status == "in_progress" {
				want[j].LastSeq = 0
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("as of %s, event %d:\n%s", row.Kind, row.Seq, diff)
		}
	}
	if len(r.lists) < 20 {
		t.Errorf("only %d commits were compared", len(r.lists))
	}
}

// checkProgress compares an unfinished message with the rows of the log.
func checkProgress(t *testing.T, m session.Message, rows []event.Event) {
	t.Helper()
	var content, step string
	calls, last := []session.ToolCall{}, int64(0)
	replies, refs, tokens, split := 0, 0, int64(0), false
	for _, row := range rows {
		if row.Turn != m.TurnID || row.Seq < m.FirstSeq {
			continue
		}
		last = row.Seq
		body, err := row.Body()
		if err != nil {
			t.Fatal(err)
		}
		switch b := body.(type) {
		case event.Text:
			if split {
				step, split = "", false
			}
			content, step = content+b.Text, step+b.Text
		case event.Reply:
			replies++
			tokens += b.Usage.InputTokens
			split = true
		case event.ToolUse:
			calls = append(calls, session.ToolCall{Tool: b.Tool, Summary: b.Summary, ToolUseID: b.ToolUseID})
		case event.ToolResult:
			calls[len(calls)-1].OK = &b.OK
		case event.Reference:
			refs++
		}
	}
	want := session.Message{LastSeq: last}
	if content != "" {
		want.Content, want.Output = &content, new(strings.TrimPrefix(step, event.StepBreak))
	}
	got := session.Message{LastSeq: m.LastSeq, Content: m.Content, Output: m.Output, Expired: m.Expired, Erased: m.Erased, Error: m.Error}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a message in progress at event %d:\n%s", last, diff)
	}
	var gotCalls []session.ToolCall
	var usage event.Usage
	if err := json.Unmarshal(m.ToolCalls, &gotCalls); err != nil {
		t.Fatal(err)
	}
	if m.Usage != nil {
		if err := json.Unmarshal(m.Usage, &usage); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(calls, gotCalls); diff != "" || (m.Usage == nil) != (replies == 0) || usage.InputTokens != tokens ||
		(m.References == nil) != (refs == 0) {
		t.Errorf("calls at event %d: %s; usage %s, references %s", last, diff, m.Usage, m.References)
	}
}

// TestAsOfIsChecked rejects positions after the newest event and cursors of another position.
func TestAsOfIsChecked(t *testing.T) {
	t.Parallel()
	r := recordBusy(t)
	head, err := r.s.Head(t.Context(), r.Workspace.ID, r.id)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.s.Messages(t.Context(), r.Workspace.ID, r.id, session.MessageQuery{Limit: 2, AsOf: new(head.LastSeq + 1)})
	if !invalidCursor(err) || !strings.Contains(err.Error(), fmt.Sprint("which is ", head.LastSeq)) {
		t.Errorf("after the newest event: %v", err)
	}
	page, err := r.s.Messages(t.Context(), r.Workspace.ID, r.id, session.MessageQuery{Limit: 2, AsOf: &head.LastSeq})
	if err != nil || !page.HasMore {
		t.Fatalf("%+v, %v", page, err)
	}
	for _, q := range []session.MessageQuery{{}, {AsOf: new(head.LastSeq - 1)}, {AsOf: &head.LastSeq, NewestFirst: true}} {
		q.Limit, q.Cursor = 2, *page.NextCursor
		if _, err := r.s.Messages(t.Context(), r.Workspace.ID, r.id, q); !invalidCursor(err) {
			t.Errorf("a cursor of another list: %v", err)
		}
	}
	if list := r.list(t, r.id, new(int64(0))); len(list) != 0 {
		t.Errorf("before the first event: %+v", list)
	}
	all := r.list(t, r.id, &head.LastSeq)
	reverse := r.listOf(t, r.s, r.id, session.MessageQuery{AsOf: &head.LastSeq, NewestFirst: true})
	for i := range all {
		if diff := cmp.Diff(all[i], reverse[len(reverse)-1-i]); diff != "" {
			t.Errorf("newest first, message %d: %s", i, diff)
		}
	}
}

// TestAsOfReportsMissingRows removes text from the log, as retention does. A position in the middle of
// the turn has no text any more; those before the first missing row and after the turn are complete.
func TestAsOfReportsMissingRows(t *testing.T) {
	t.Parallel()
	r := recordBusy(t)
	rows := r.s.Rows(t, eventlog.From{Session: r.id})
	first := rows[0].Turn
	var open, use, done int64
	for _, row := range rows {
		switch {
		case row.Turn != first:
		case row.Kind == event.KindOpen:
			open = row.Seq
		case row.Kind == event.KindToolUse:
			use = row.Seq
		case row.Kind == event.KindDone:
			done = row.Seq
		}
	}
	dbtest.Tamper(t, r.Pool, `DELETE FROM events WHERE turn_id = $1 AND delta`, first)
	for seq, expired := range map[int64]bool{open: false, use - 2: true, use: true, done - 1: true, done: false} {
		m := r.list(t, r.id, &seq)[1]
		if m.Expired != expired || expired && (m.Content != nil || m.Output != nil) || seq == done && (m.Content == nil || *m.Content == "") {
			t.Errorf("as of %d of %d to %d: %+v", seq, open, done, m)
		}
		if seq == use && !strings.Contains(string(m.ToolCalls), `"t1"`) {
			t.Errorf("the calls are %s", m.ToolCalls)
		}
	}
}
