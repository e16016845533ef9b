package turn_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/turn"
)

// TestForkSeesTheHistoryUpToItsTurn forks a session of three turns after the second one, and forks
// the fork. The model receives what it received for the third message up to that message, and
// nothing later; each request can be rebuilt. After the first session is erased, it receives the
// fork's own turns.
func TestForkSeesTheHistoryUpToItsTurn(t *testing.T) {
	t.Parallel()
	script := &modeltest.Script{Replies: []modeltest.Reply{
		{Text: []string{"I look."}, Calls: []modeltest.Call{{ID: "call_a", Tool: "book", Input: `{"n": 1}`}},
			Usage: &model.Usage{InputTokens: 100, OutputTokens: 5}},
		{Text: []string{"One."}}, {Text: []string{"Two."}}, {Text: []string{"Three."}}, {Text: []string{"Four."}},
		{Text: []string{"Five."}}, {Text: []string{"Six."}},
	}}
	w := newWorld(t, script)
	l := newLedger(t, w, false)
	l.leave <- struct{}{}
	r := w.replica(t, nil)
	first := w.start(t, r, "message 1")
	read(t, r, first)
	say := func(st turn.Started, command string) turn.Started {
		t.Helper()
		next, err := r.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Session: st.Session, Command: command})
		if err != nil {
			t.Fatal(err)
		}
		read(t, r, next)
		return next
	}
	fork := func(st turn.Started, seq *int64) turn.Started {
		t.Helper()
		sum, err := r.sessions.Fork(t.Context(), w.workspace.ID, st.Session, seq, "")
		if err != nil {
			t.Fatal(err)
		}
		return turn.Started{Session: sum.SessionID}
	}
	second := say(first, "message 2")
	var end int64
	if err := w.pool.QueryRow(t.Context(), `SELECT end_seq FROM turns WHERE id = $1`, second.Turn).Scan(&end); err != nil {
		t.Fatal(err)
	}
	say(first, "message 3")
	one := fork(first, &end)
	say(one, "message 4")
	two := fork(one, nil)
	say(two, "message 5")
	say(first, "message 6") // the first session goes on

	texts := func(n int) (all []string) {
		for _, m := range sentMessages(t, script.Requests()[n])[1:] {
			all = append(all, m.Content)
		}
		return all
	}
	third := texts(3)
	history := third[:len(third)-1]
	for n, want := range map[int][]string{
		4: append(slices.Clone(history), "message 4"),
		5: append(slices.Clone(history), "message 4", "Four.", "message 5"),
		6: append(slices.Clone(third), "Three.", "message 6"),
	} {
		if got := texts(n); !slices.Equal(got, want) {
			t.Errorf("request %d has\n%q, want\n%q", n, got, want)
		}
	}
	if len(history) != 6 {
		t.Errorf("the history is %q", history)
	}
	for _, st := range []turn.Started{one, two} {
		c, err := r.turns.Context(t.Context(), w.workspace.ID, st.Session, 0, 0)
		if err != nil || c.SHA256 != c.Reply.PromptSHA256 {
			t.Errorf("the rebuilt request of %s: %v, %s and %s", st.Session, err, c.SHA256, c.Reply.PromptSHA256)
		}
	}
	if _, err := r.sessions.EraseContent(t.Context(), first.Session, "cli:test"); err != nil {
		t.Fatal(err)
	}
	if c, err := r.turns.Context(t.Context(), w.workspace.ID, two.Session, 1, 1); err != nil || c.Matches() || !c.HistoryErased {
		t.Errorf("the request before the erasure: %v, %t, %t", err, c.Matches(), c.HistoryErased)
	}
	say(two, "message 7")
	if c, err := r.turns.Context(t.Context(), w.workspace.ID, two.Session, 2, 1); err != nil || !c.Matches() || c.HistoryErased {
		t.Errorf("the request after the erasure: %v, %t, %t", err, c.Matches(), c.HistoryErased)
	}
	if got, want := texts(7), []string{"message 4", "Four.", "message 5", "Five.", "message 7"}; !slices.Equal(got, want) {
		t.Errorf("after the erasure the model receives %q, want %q", got, want)
	}
}

// TestForkOfACompactedSession forks a session after a turn that was compacted: the summary stands for
// its beginning in the fork too, and the model reads a result that the summary covers.
func TestForkOfACompactedSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("unused"))
	m := &reader{}
	w.model, w.tools = m, []tool.Tool{pages{}}
	r := w.replica(t, smallWindow)
	first := w.start(t, r, "look")
	read(t, r, first)
	fork, err := r.sessions.Fork(t.Context(), w.workspace.ID, first.Session, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	second, err := r.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Session: fork.SessionID, Command: "read"})
	if err != nil {
		t.Fatal(err)
	}
	read(t, r, second)
	m.mu.Lock()
	last := m.requests[len(m.requests)-1]
	m.mu.Unlock()
	if got := last.Messages[len(last.Messages)-1].Text; !strings.HasPrefix(last.Messages[0].Text, "<summary ") ||
		!strings.HasPrefix(got, "the page of call_1 ") {
		t.Errorf("the fork begins with %.80q and reads %.80q", last.Messages[0].Text, got)
	}
	for step := 1; step <= 2; step++ {
		c, err := r.turns.Context(t.Context(), w.workspace.ID, fork.SessionID, 1, step)
		if err != nil || c.SHA256 != c.Reply.PromptSHA256 || c.Compacted == nil {
			t.Errorf("step %d: %v, %s and %s", step, err, c.SHA256, c.Reply.PromptSHA256)
		}
	}
}
