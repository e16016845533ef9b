package turn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/turn"
)

// mine are the caller's own tools in these tests.
var mine = []turn.CallerTool{{Name: "mine", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}}

// need starts a turn and returns its question for results of the caller's tools.
func (w *world) need(t testing.TB, r *replica, script string) (turn.Started, event.ToolRequired) {
	t.Helper()
	st, err := r.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Command: script, Tools: mine, Key: "sender"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for evs, err := range r.events.Follow(ctx, st.From) {
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range evs {
			if q, ok := must(ev.Body()).(event.ToolRequired); ok {
				return st, q
			}
		}
	}
	panic("unreachable")
}

func result(id, output string) []session.ToolResult {
	return []session.ToolResult{{ToolUseID: id, OK: true, Output: output}}
}

func codeOf(err error) fault.Code {
	if f := fault.From(err); f != nil {
		return f.Code
	}
	return ""
}

// results returns the results of a turn's calls, in their order.
func results(evs []event.Event) (list []event.ToolResult) {
	for _, ev := range evs {
		if r, ok := must(ev.Body()).(event.ToolResult); ok {
			list = append(list, r)
		}
	}
	return list
}

// TestResultsOfCallersTools posts results on two replicas: the first result of a call wins, and ids
// of other sessions, workspaces and kinds are rejected.
func TestResultsOfCallersTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("unused"))
	w.model = builtin.New()
	replicas := []*replica{w.replica(t, nil), w.replica(t, nil)}
	r, ctx, ws := replicas[0], t.Context(), w.workspace.ID

	st, q := w.need(t, r, "@call mine {\"n\":1} mine {\"n\":\"x\"} mine {\"n\":2}\n@say Done.")
	if len(q.Calls) != 2 || q.ReplyURL != fmt.Sprintf("/api/v1/workspaces/%s/sessions/%s/tool-results", ws, st.Session) ||
		time.Until(q.ExpiresAt) > 10*time.Minute {
		t.Fatalf("asked for %+v", q)
	}
	first, second := q.Calls[0].ToolUseID, q.Calls[1].ToolUseID
	other, foreign := w.need(t, r, "@call mine {\"n\":1}\n@say Done.")
	for what, post := range map[string]func() error{
		"an invented id": func() error {
			_, err := r.turns.PostResults(ctx, ws, st.Session, "k", result("call_x", "1"))
			return err
		},
		"an id of another session": func() error {
			_, err := r.turns.PostResults(ctx, ws, st.Session, "k", append(result(first, "1"), result(foreign.Calls[0].ToolUseID, "1")...))
			return err
		},
		"the wrong kind":      func() error { _, err := r.turns.PostLater(ctx, ws, "k", result(first, "1")[0]); return err },
		"a foreign workspace": func() error { _, err := r.turns.PostLater(ctx, uuid.New(), "k", result(first, "1")[0]); return err },
	} {
		if err := post(); codeOf(err) != fault.ToolCallNotFound {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := r.turns.PostResults(ctx, uuid.New(), st.Session, "k", result(first, "1")); codeOf(err) != fault.SessionNotFound {
		t.Errorf("a session of another workspace: %v", err)
	}

	if p, err := r.turns.PostResults(ctx, ws, st.Session, "k", result(second, "2")); err != nil || !slices.Equal(p.Open, []string{first}) ||
		p.Resumed {
		t.Fatalf("the first of two results: %+v, %v", p, err)
	}
	if p, err := r.turns.PostResults(ctx, ws, st.Session, "k", result(second, "2")); err != nil || len(p.Stored) > 0 ||
		!slices.Equal(p.Open, []string{first}) {
		t.Errorf("the same result again: %+v, %v", p, err)
	}
	if _, err := r.turns.PostResults(ctx, ws, st.Session, "k",
		append(result(first, "?"), result(second, "3")...)); codeOf(err) != fault.ToolCallAnswered {
		t.Errorf("another result: %v", err)
	}
	const racers = 8
	var mu sync.Mutex
	var won []string
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() {
			output := fmt.Sprintf("racer %d", i)
			_, err := replicas[i%2].turns.PostResults(ctx, ws, st.Session, "k", result(first, output))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, output)
			} else if codeOf(err) != fault.ToolCallAnswered {
				t.Errorf("a racer: %v", err)
			}
		})
	}
	wait.Until(t, "the racers", wg.Wait)
	evs := read(t, r, st)
	list := results(evs)
	if len(won) != 1 || len(list) != 3 || list[0].OK || list[1].Output != won[0] || list[2].Output != "2" || text(evs) != "Done." {
		t.Errorf("%q won; the results are %+v", won, list)
	}
	if got, want := kinds(evs), "open started reply tool_use tool_use tool_result tool_use tool_required tool_reply tool_reply decision "+
		"started tool_result tool_result text reply usage done"; got != want {
		t.Errorf("events: %s\nwant:   %s", got, want)
	}

	if c, err := r.turns.Cancel(ctx, ws, other.Session); err != nil || !c.Canceled {
		t.Errorf("cancel: %+v, %v", c, err)
	}
	if list := results(read(t, r, other)); len(list) != 1 || list[0].OK || list[0].Output != "canceled" {
		t.Errorf("after the cancel: %+v", list)
	}
	if _, err := r.turns.PostResults(ctx, ws, other.Session, "k", result(foreign.Calls[0].ToolUseID,
		"1")); codeOf(err) != fault.ToolCallAnswered {
		t.Errorf("a result after the cancel: %v", err)
	}
	if _, err := r.sessions.EraseContent(ctx, other.Session, "test"); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := w.pool.QueryRow(ctx, `SELECT count(*) + (SELECT count(*) FROM turns WHERE session_id = $1 AND tools IS NOT NULL) FROM `+
		`tool_replies WHERE session_id = $1`, other.Session).Scan(&left); err != nil || left != 0 {
		t.Errorf("an erased session has %d rows about its calls: %v", left, err)
	}
}

// TestResultsComeTooLate: calls without a result fail at the end of the time.
func TestResultsComeTooLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("unused"))
	w.model = builtin.New()
	r := w.replica(t, func(c *turn.Config) { c.Window = 5 * time.Second })
	st, q := w.need(t, r, "@call mine mine\n@say Done.")
	if _, err := r.turns.PostResults(t.Context(), w.workspace.ID, st.Session, "k", result(q.Calls[1].ToolUseID, "2")); err != nil {
		t.Fatal(err)
	}
	list := results(read(t, r, st))
	if len(list) != 2 || list[0].OK || list[0].Output != "The tool gave no result within 5 seconds." || !list[1].OK {
		t.Errorf("%+v", list)
	}
	_, err := r.turns.PostResults(t.Context(), w.workspace.ID, st.Session, "k", result(q.Calls[0].ToolUseID, "1"))
	if codeOf(err) != fault.ToolCallAnswered {
		t.Errorf("after the end of the turn: %v", err)
	}
}

// accepting is a tool whose server answers 202, and posts the result before or after the turn
// waits.
type accepting struct {
	early func(context.Context, tool.Call) error
	ids   chan string
}

func (accepting) Spec() tool.Spec {
	return tool.Spec{Name: "slow", Schema: json.RawMessage(`{"type":"object"}`), Later: true}
}

func (a accepting) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	if err := c.Await(ctx); err != nil {
		return tool.Result{}, err
	}
	a.ids <- c.ID
	return tool.Result{}, orLater(a.early(ctx, c))
}

// orLater returns an error, or Later.
func orLater(err error) error {
	if err != nil {
		return err
	}
	return tool.Later{}
}

// TestLaterResults: the result of an accepted call is posted before the turn waits for it, or
// afterwards.
func TestLaterResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("unused"))
	w.model = builtin.New()
	r := w.replica(t, nil)
	post := func(ctx context.Context, id, output string) error {
		_, err := r.turns.PostLater(ctx, w.workspace.ID, "server", result(id, output)[0])
		return err
	}
	slow := accepting{ids: make(chan string, 4), early: func(ctx context.Context, c tool.Call) error {
		if string(c.Input) == `{"early":true}` {
			return post(ctx, c.ID, "early")
		}
		return nil
	}}
	w.tools = []tool.Tool{slow}
	st := w.start(t, r, "@call slow {\"early\":true} slow {}\n@say Done.")
	first, second := wait.Receive(t, "the first call", slow.ids), wait.Receive(t, "the second call", slow.ids)
	if err := post(t.Context(), second, "late"); err != nil {
		t.Fatal(err)
	}
	evs := read(t, r, st)
	if list := results(evs); len(list) != 2 || list[0].Output != "early" || list[1].Output != "late" || first == second {
		t.Errorf("%+v", list)
	}
	if err := post(t.Context(), second, "late"); err != nil {
		t.Errorf("the same result again: %v", err)
	}
	if err := post(t.Context(), first, "other"); codeOf(err) != fault.ToolCallAnswered {
		t.Errorf("another result: %v", err)
	}
}
