package session_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/sessiontest"
)

// fork forks a session.
func (w *world) fork(t *testing.T, s *sessiontest.Replica, id uuid.UUID, seq *int64) session.Summary {
	t.Helper()
	sum, err := s.Fork(t.Context(), w.Workspace.ID, id, seq, "key00001")
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestForkAtEveryEvent forks a busy session at each of its events. The fork has the messages of the
// turns that had ended by then, without a row of its own.
func TestForkAtEveryEvent(t *testing.T) {
	t.Parallel()
	r := recordBusy(t)
	rows := r.s.Rows(t, eventlog.From{Session: r.id})
	all, end, forks := r.list(t, r.id, nil), int64(0), 0
	ended := make(map[uuid.UUID]bool)
	for _, row := range rows {
		if row.Kind == event.KindDone {
			ended[row.Turn], end = true, row.Seq
		}
		if end == 0 {
			if _, err := r.s.Fork(t.Context(), r.Workspace.ID, r.id, &row.Seq, ""); !invalidCursor(err) {
				t.Errorf("a fork at event %d: %v", row.Seq, err)
			}
			continue
		}
		sum := r.fork(t, r.s, r.id, &row.Seq)
		forks++
		if diff := cmp.Diff(&session.Origin{SessionID: r.id, Seq: end}, sum.ForkedFrom); diff != "" || sum.Status != session.NotStarted ||
			sum.LastSeq != 0 {
			t.Errorf("a fork at event %d: %s, %+v", row.Seq, diff, sum)
		}
		var want []session.Message
		for _, m := range all {
			if ended[m.TurnID] {
				m.InheritedFrom = &r.id
				want = append(want, m)
			}
		}
		if diff := cmp.Diff(want, r.list(t, sum.SessionID, nil)); diff != "" {
			t.Errorf("a fork at event %d:\n%s", row.Seq, diff)
		}
	}
	if n := r.Count(t, `SELECT count(*) FROM events e JOIN sessions s ON s.id = e.session_id WHERE s.parent_id IS NOT NULL`); n != 0 ||
		forks == 0 {
		t.Errorf("%d forks have %d events", forks, n)
	}
	if sum := r.fork(t, r.s, r.id, nil); sum.ForkedFrom.Seq != end {
		t.Errorf("a fork at the newest event begins at %d, not at %d", sum.ForkedFrom.Seq, end)
	}
	for name, of := range map[string][2]uuid.UUID{"another workspace": {uuid.New(), r.id}, "no session": {r.Workspace.ID, uuid.New()}} {
		if _, err := r.s.Fork(t.Context(), of[0], of[1], nil, ""); fault.From(err) == nil || fault.From(err).Code != fault.SessionNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := r.s.Fork(t.Context(), r.Workspace.ID, r.id, new(rows[len(rows)-1].Seq+1), ""); !invalidCursor(err) {
		t.Errorf("a fork after the newest event: %v", err)
	}
}

// TestForkOfAFork forks a fork after a turn of its own, and in the part that it has from the first
// session. The lists as of an event are those of the first session.
func TestForkOfAFork(t *testing.T) {
	t.Parallel()
	r := recordBusy(t)
	one := r.fork(t, r.s, r.id, nil)
	b := &recorder{world: r.world, s: r.s, id: one.SessionID, lists: make(map[int64][]session.Message)}
	turn := b.begin(t, "another way")
	b.end(t, turn, session.Ending{Trigger: session.Complete, Epoch: b.claim(t, turn).Epoch, Halted: true})
	later := r.begin(t, "later") // in the first session, after the fork

	two := r.fork(t, r.s, one.SessionID, nil)
	got, want := r.list(t, two.SessionID, nil), r.list(t, one.SessionID, nil)
	if len(got) != 8 || len(want) != 8 {
		t.Fatalf("%d and %d messages", len(got), len(want))
	}
	for i := range want {
		if want[i].TurnID == later {
			t.Error("the fork has a message that came later")
		}
		if want[i].InheritedFrom == nil {
			want[i].InheritedFrom = &one.SessionID
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the fork of the fork:\n%s", diff)
	}

	first := r.list(t, r.id, nil)[1]
	early := r.fork(t, r.s, two.SessionID, &first.LastSeq)
	if list := r.list(t, early.SessionID, nil); len(list) != 4 || early.ForkedFrom.SessionID != two.SessionID ||
		early.ForkedFrom.Seq != first.LastSeq {
		t.Errorf("a fork at %d has %d messages, from %+v", first.LastSeq, len(list), early.ForkedFrom)
	}
	for _, row := range r.s.Rows(t, eventlog.From{Session: r.id}) {
		if row.Seq > two.ForkedFrom.Seq || row.Turn == later {
			continue
		}
		var want []session.Message
		for _, m := range r.list(t, r.id, &row.Seq) {
			if m.TurnID != got[len(got)-1].TurnID && isListed(got, m) {
				m.InheritedFrom = &r.id
				want = append(want, m)
			}
		}
		if diff := cmp.Diff(want, r.list(t, two.SessionID, &row.Seq)); diff != "" {
			t.Errorf("as of event %d:\n%s", row.Seq, diff)
		}
	}
	id := two.SessionID
	for range session.MaxForks - 2 {
		id = r.fork(t, r.s, id, nil).SessionID
	}
	if _, err := r.s.Fork(t.Context(), r.Workspace.ID, id, nil, ""); fault.From(err) == nil || fault.From(err).Code != fault.ObjectConflict {
		t.Errorf("one fork more: %v", err)
	}
}

func isListed(list []session.Message, m session.Message) bool {
	for _, other := range list {
		if other.MessageID == m.MessageID {
			return true
		}
	}
	return false
}

// TestErasureReachesForks erases the session that a fork continues: its content is gone from the fork,
// which takes another message. After the retention its rows are gone as well.
func TestErasureReachesForks(t *testing.T) {
	t.Parallel()
	r := recordBusy(t)
	fork := r.fork(t, r.s, r.id, nil)
	middle := r.fork(t, r.s, r.id, nil)
	m := &recorder{world: r.world, s: r.s, id: middle.SessionID, lists: make(map[int64][]session.Message)}
	own := m.begin(t, "another way")
	m.end(t, own, session.Ending{Trigger: session.Complete, Epoch: m.claim(t, own).Epoch, Halted: true})
	last := r.fork(t, r.s, middle.SessionID, nil)
	if _, err := r.s.EraseContent(t.Context(), middle.SessionID, "cli:test"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []uuid.UUID{middle.SessionID, last.SessionID} {
		if list := r.list(t, id, nil); len(list) != 2 || !list[0].Erased || list[0].Content != nil {
			t.Errorf("through an erased fork: %+v", list)
		}
	}
	if _, err := r.s.EraseContent(t.Context(), r.id, "cli:test"); err != nil {
		t.Fatal(err)
	}
	read := func() session.Summary {
		t.Helper()
		sum, err := r.s.Summary(t.Context(), r.Workspace.ID, fork.SessionID)
		if err != nil || sum.ForkedFrom == nil || !sum.ForkedFrom.Erased || sum.ErasedAt != nil {
			t.Fatalf("the fork is %+v, %v", sum, err)
		}
		return sum
	}
	read()
	list := r.list(t, fork.SessionID, nil)
	for _, m := range list {
		if !m.Erased || m.Content != nil || m.InheritedFrom == nil {
			t.Errorf("an erased message: %+v", m)
		}
	}
	if len(list) != 6 {
		t.Errorf("%d messages", len(list))
	}
	b := &recorder{world: r.world, s: r.s, id: fork.SessionID, lists: make(map[int64][]session.Message)}
	turn := b.begin(t, "go on")
	lease := b.claim(t, turn)
	past, err := r.s.History(t.Context(), session.Turn{ID: turn, SessionID: fork.SessionID, StartSeq: 1 << 60})
	if err != nil || len(past) != 0 {
		t.Errorf("the history is %+v, %v", past, err)
	}
	b.end(t, turn, session.Ending{Trigger: session.Complete, Epoch: lease.Epoch, Halted: true})
	if _, err := r.s.Fork(t.Context(), r.Workspace.ID, r.id, nil, ""); fault.From(err) == nil ||
		fault.From(err).Code != fault.SessionNotFound {
		t.Errorf("a fork of an erased session: %v", err)
	}
	r.Exec(t, `DELETE FROM sessions WHERE id = $1`, r.id) // as retention does
	if read(); len(r.list(t, fork.SessionID, nil)) != 2 {
		t.Errorf("the fork lists %+v", r.list(t, fork.SessionID, nil))
	}
}
