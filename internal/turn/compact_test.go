package turn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/turn"
)

// reader is a model that calls the tool fetch eight times, with long texts, and then answers. Asked to
// "read", it reads the first result again. Its replies depend only on the request.
type reader struct {
	mu       sync.Mutex
	requests []model.Request
}

func (*reader) Name() string { return "openai/gpt-5-mini" }

func (m *reader) Generate(_ context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	m.mu.Lock()
	m.requests = append(m.requests, req)
	m.mu.Unlock()
	last := req.Messages[len(req.Messages)-1]
	c := model.Chunk{Stop: model.StopTools, Usage: &model.Usage{InputTokens: 1000, OutputTokens: 10}}
	for _, message := range req.Messages {
		c.Usage.InputTokens += int64(len(message.Text)) / 4
	}
	step := 0
	if last.Role == model.ToolRole {
		_, _ = fmt.Sscanf(last.CallID, "call_%d", &step)
	}
	switch {
	case strings.HasPrefix(req.System, "You summarize"):
		c.Text, c.Stop = "It has read the pages.", model.StopEnd
	case last.Text == "read":
		c.Call = &event.ToolCall{ID: "read_1", Tool: "read_tool_result", Input: json.RawMessage(`{"tool_use_id":"call_1"}`)}
	case last.CallID == "read_1" || step == 8:
		c.Text, c.Stop = "Done.", model.StopEnd
	default:
		c.Text = strings.Repeat("I read on. ", 200)
		c.Call = &event.ToolCall{ID: fmt.Sprint("call_", step+1), Tool: "fetch", Input: json.RawMessage(`{}`)}
	}
	return func(yield func(model.Chunk, error) bool) { yield(c, nil) }
}

// pages is a tool that returns a page.
type pages struct{}

func (pages) Spec() tool.Spec {
	return tool.Spec{Name: "fetch", Schema: json.RawMessage(`{"type":"object"}`), Idempotent: true}
}

func (pages) Call(_ context.Context, c tool.Call) (tool.Result, error) {
	return tool.Result{OK: true, Output: strings.Repeat("the page of "+c.ID+" ", 50)}, nil
}

// smallWindow gives the model of a world a window of 4,000 tokens.
func smallWindow(c *turn.Config) {
	c.Catalog = model.NewCatalog([]model.Entry{{Name: "openai/gpt-5-mini", Window: 4000}})
}

// TestCompactedSession runs a turn that is compacted, and another one after it: the second one
// loads the summary and what follows it, and reads a result that the summary covers from the log.
func TestCompactedSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("unused"))
	m := &reader{}
	w.model, w.tools = m, []tool.Tool{pages{}}
	r := w.replica(t, smallWindow)
	first := w.start(t, r, "look")
	read(t, r, first)
	second, err := r.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Session: first.Session, Command: "read"})
	if err != nil {
		t.Fatal(err)
	}
	read(t, r, second)

	m.mu.Lock()
	last := m.requests[len(m.requests)-1]
	summaries := 0
	for _, req := range m.requests {
		if strings.HasPrefix(req.System, "You summarize") {
			summaries++
		}
	}
	m.mu.Unlock()
	if got := last.Messages[len(last.Messages)-1].Text; !strings.HasPrefix(last.Messages[0].Text, "<summary ") ||
		last.Messages[1].Text != "look" || !strings.HasPrefix(got, "the page of call_1 ") {
		t.Errorf("the second turn begins with %.80q, %.80q and reads %.80q", last.Messages[0].Text, last.Messages[1].Text, got)
	}
	var used event.Usage
	var sum int64
	if err := w.pool.QueryRow(t.Context(),
		`SELECT m.usage, (SELECT sum((data->'usage'->>'input_tokens')::bigint) FROM events e WHERE e.turn_id = m.turn_id AND kind IN ('reply', 'compacted'))
		FROM messages m WHERE m.turn_id = $1 AND m.role = 'assistant'`, first.Turn).Scan(&used, &sum); err != nil {
		t.Fatal(err)
	}
	if summaries == 0 || used.InputTokens != sum {
		t.Errorf("with %d summaries, the turn has used %d of %d input tokens", summaries, used.InputTokens, sum)
	}
	checkContexts(t, w, r, first.Session)
	past, err := r.sessions.History(t.Context(), session.Turn{ID: second.Turn, SessionID: first.Session, StartSeq: 1 << 60})
	if err != nil || len(past) != 1 {
		t.Errorf("the history has %d turns, %v", len(past), err)
	}
}

// TestHistoryBeginsAtTheSummary loads the history of a session with two turns before the summary.
func TestHistoryBeginsAtTheSummary(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("Yes."))
	r := w.replica(t, nil)
	first := w.start(t, r, "one")
	read(t, r, first)
	turns := []turn.Started{first}
	for _, text := range []string{"two", "three", "four"} {
		st, err := r.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Session: first.Session, Command: text})
		if err != nil {
			t.Fatal(err)
		}
		read(t, r, st)
		turns = append(turns, st)
	}
	summary, err := event.Encode(event.Compacted{Upto: event.Place{Turn: turns[1].Turn, Step: 1}, Summary: "It began."})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.pool.Exec(t.Context(), `INSERT INTO events (seq, session_id, turn_id, at, delta, ord, kind, data)
		SELECT nextval('events_seq_seq'), session_id, $1, at, delta, ord + 1000, 'compacted', $2 FROM events WHERE turn_id = $1 AND kind = 'reply'`, turns[2].Turn, summary); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]string{1: "one", 2: "one two", 3: "two three"} { // as earlier turns see it, too
		past, err := r.sessions.History(t.Context(), session.Turn{ID: turns[n].Turn, SessionID: first.Session, StartSeq: turns[n].From.Seq})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range past {
			got = append(got, p.Message)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("turn %d loads %q, want %q", n, got, want)
		}
	}
}

// checkContexts rebuilds the requests of all replies of a session on another replica, and compares
// their hashes with the recorded ones.
func checkContexts(t *testing.T, w *world, r *replica, id uuid.UUID) {
	t.Helper()
	var turns, replies int
	for turns = 1; ; turns++ {
		step := 1
		for ; ; step++ {
			c, err := r.turns.Context(t.Context(), w.workspace.ID, id, turns, step)
			if err != nil {
				if fault.From(err) == nil {
					t.Fatal(err)
				}
				break
			}
			replies++
			if c.SHA256 != c.Reply.PromptSHA256 || c.Reply.PromptSHA256 == "" || len(c.Request.Tools) == 0 ||
				!strings.HasSuffix(c.Request.System, "Be brief.") {
				t.Errorf("step %d of turn %d: the rebuilt request has the hash %s, the recorded one %s", step, turns, c.SHA256, c.Reply.PromptSHA256)
			}
		}
		if step == 1 {
			break
		}
	}
	newest, err := r.turns.Context(t.Context(), w.workspace.ID, id, 0, 0)
	if err != nil || newest.Step == 0 || replies < 9 {
		t.Errorf("%d replies in %d turns; the newest is %d, %v", replies, turns-1, newest.Step, err)
	}
}
