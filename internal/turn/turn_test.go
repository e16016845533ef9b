package turn_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/turn"
)

// booking answers with a tool call first, and with text once it has the result.
func booking() *modeltest.Script {
	return &modeltest.Script{Answer: func(r modeltest.Request) modeltest.Reply {
		body := string(r.Body)
		if strings.Contains(body[strings.LastIndex(body, `"role":"user"`):], `"role":"tool"`) {
			return modeltest.Reply{Text: []string{"All ", "done."}, Usage: &model.Usage{InputTokens: 20, OutputTokens: 2}}
		}
		return modeltest.Reply{Text: []string{"Let me see. "}, Calls: []modeltest.Call{{ID: "c1", Tool: "book", Input: `{"n":1}`}},
			Usage: &model.Usage{InputTokens: 10, OutputTokens: 5}}
	}}
}

func TestTurnAnswers(t *testing.T) {
	t.Parallel()
	script := booking()
	w := newWorld(t, script)
	l := newLedger(t, w, false)
	l.leave <- struct{}{} // for each of the two turns
	l.leave <- struct{}{}
	r := w.replica(t, nil)
	st := w.start(t, r, "book it")
	evs := read(t, r, st)
	if got, want := kinds(evs), "open started text reply tool_use tool_result text reply usage done"; got != want {
		t.Errorf("events: %s\nwant:   %s", got, want)
	}
	if got := text(evs); got != "Let me see. \n\nAll done." {
		t.Errorf("text %q", got)
	}
	for _, ev := range evs {
		if u, ok := must(ev.Body()).(event.Usage); ok && (u.InputTokens != 30 || u.OutputTokens != 7 || u.CostUSD == nil ||
			u.Model != "openai/gpt-5-mini") {
			t.Errorf("usage %+v", u)
		}
	}
	next, err := r.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Session: st.Session, Command: "and then?"})
	if err != nil {
		t.Fatal(err)
	}
	read(t, r, next)
	requests := script.Requests()
	if body := string(requests[len(requests)-1].Body); !strings.Contains(body, "book it") ||
		!strings.Contains(body, `"content":"Let me see. "`) || !strings.Contains(body, `"content":"All done."`) ||
		strings.Count(body, "and then?") != 1 {
		t.Errorf("the request does not contain each message of the history once: %s", body)
	}
}

func TestSecondMessageIsRefusedWhileOneIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, booking())
	l := newLedger(t, w, false)
	r := w.replica(t, nil)
	st := w.start(t, r, "book it")
	wait.Receive(t, "a call of the tool", l.entered)
	_, err := r.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Session: st.Session, Command: "again"})
	if f := fault.From(err); f == nil || f.Code != fault.TurnInProgress {
		t.Errorf("second message: %v", err)
	}
	l.leave <- struct{}{}
	if got := failure(read(t, r, st)); got != "" {
		t.Errorf("the first turn failed: %s", got)
	}
}

// TestStoppingProcessHandsOver stops a process while a tool runs. The tool may finish; the rest of
// the turn runs on another replica, and nothing runs twice. The model's next reply waits for the
// stop, which may come a moment after the tool's end.
func TestStoppingProcessHandsOver(t *testing.T) {
	t.Parallel()
	stopped := make(chan struct{})
	script, answer := booking(), booking().Answer
	script.Answer = func(r modeltest.Request) modeltest.Reply {
		if r.N > 0 {
			<-stopped
		}
		return answer(r)
	}
	w := newWorld(t, script)
	l := newLedger(t, w, false)
	first := w.replica(t, nil)
	st := w.start(t, first, "book it")
	wait.Receive(t, "a call of the tool", l.entered)
	second := w.replica(t, nil)
	go func() {
		first.stop()
		close(stopped)
	}()
	l.leave <- struct{}{}
	evs := read(t, second, st)
	if got, want := kinds(evs), "open started text reply tool_use tool_result started text reply usage done"; got != want {
		t.Errorf("events: %s\nwant:   %s", got, want)
	}
	if got := text(evs); got != "Let me see. \n\nAll done." || l.entries(t) != 1 {
		t.Errorf("text %q, the tool ran %d times", got, l.entries(t))
	}
}

// TestLostLeaseIsTakenOver gives a turn to a live node that does not renew the lease, like a frozen
// process.
func TestLostLeaseIsTakenOver(t *testing.T) {
	for _, idempotent := range []bool{false, true} {
		t.Run(fmt.Sprintf("idempotent=%v", idempotent), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, booking())
			l := newLedger(t, w, idempotent)
			r := w.replica(t, func(c *turn.Config) { c.Lease = 2 * time.Second })
			frozen := w.replica(t, func(c *turn.Config) { c.Workers = 0 })
			st := w.start(t, r, "book it")
			wait.Receive(t, "a call of the tool", l.entered)
			l.leave <- struct{}{} // for the next call; the first one may receive it too
			if _, err := w.pool.Exec(t.Context(), `UPDATE turns SET lease_until = now() - interval '1 second', node = $2 WHERE id = $1`,
				st.Turn, frozen.events.Node()); err != nil {
				t.Fatal(err)
			}
			l.leave <- struct{}{}
			evs := read(t, r, st)
			results, unknown := 0, 0
			for _, ev := range evs {
				if b, ok := must(ev.Body()).(event.ToolResult); ok {
					results++
					if !b.OK {
						unknown++
					}
				}
			}
			if results != 1 || !strings.HasSuffix(text(evs), "All done.") {
				t.Errorf("%d results, text %q: %s", results, text(evs), kinds(evs))
			}
			if idempotent && unknown > 0 {
				t.Error("an idempotent call was abandoned")
			}
			if !idempotent && l.entries(t) != 1 {
				t.Errorf("the tool ran %d times", l.entries(t))
			}
		})
	}
}

// TestStrandedTurnIsQueuedAgain creates a job fetched by a node that died before it claimed the
// turn.
func TestStrandedTurnIsQueuedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("hi"))
	idle := w.replica(t, func(c *turn.Config) { c.Workers = 0 })
	st := w.start(t, idle, "hello")
	if _, err := w.pool.Exec(t.Context(),
		`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = '{4711}'`); err != nil {
		t.Fatal(err)
	}
	r := w.replica(t, nil)
	if got := text(read(t, r, st)); got != "hi" {
		t.Errorf("text %q", got)
	}
}

func TestTurnEndsByItsLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		script *modeltest.Script
		limits turn.Limits
		want   event.Code
	}{
		{"time", &modeltest.Script{Replies: []modeltest.Reply{{Text: []string{"a", "b"}, Hold: 1}}}, turn.Limits{MaxResponseSeconds: 1},
			event.TimedOut},
		{"model calls", &modeltest.Script{Answer: func(modeltest.Request) modeltest.Reply {
			return modeltest.Reply{Calls: []modeltest.Call{{Tool: "nonsense", Input: `{}`}}}
		}}, turn.Limits{MaxTurns: 3}, event.MaxTurnsExceeded},
		{"provider", &modeltest.Script{Answer: func(modeltest.Request) modeltest.Reply {
			return modeltest.Reply{Status: http.StatusUnauthorized}
		}}, turn.Limits{}, event.ModelError},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.script)
			r := w.replica(t, nil)
			st, err := r.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Command: "go", Limits: c.limits})
			if err != nil {
				t.Fatal(err)
			}
			evs := read(t, r, st)
			if got := failure(evs); got != c.want || evs[len(evs)-1].Kind != event.KindDone {
				t.Errorf("ended by %q: %s", got, kinds(evs))
			}
		})
	}
}

// TestCancelAgainstCompletion races a cancel against the completion a thousand times. Each turn has
// one terminal state and one done event, which is the last event, and the result of Cancel agrees
// with the log.
func TestCancelAgainstCompletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &modeltest.Script{Answer: func(modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Text: []string{"a ", "b ", "c"}}
	}})
	here, there := w.replica(t, nil), w.replica(t, nil)
	const rounds, lanes = 1000, 8
	var wg sync.WaitGroup
	var mu sync.Mutex
	canceled := 0
	for lane := range lanes {
		wg.Go(func() {
			for range rounds / lanes {
				st, err := here.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Command: "go"})
				if err != nil {
					t.Errorf("start: %v", err)
					return
				}
				pause(time.Duration(rand.N(40)) * time.Millisecond)
				c, err := []*replica{here, there}[lane%2].turns.Cancel(t.Context(), w.workspace.ID, st.Session)
				if err != nil {
					t.Errorf("cancel: %v", err)
					return
				}
				evs := read(t, here, st)
				if again, err := there.turns.Cancel(t.Context(), w.workspace.ID, st.Session); err != nil || again.Canceled {
					t.Errorf("the second cancel: %+v, %v", again, err)
				}
				for evs2, err := range here.events.After(t.Context(), st.From) {
					if err != nil || len(evs2) != len(evs) {
						t.Errorf("events follow done: %s, then %s (%v)", kinds(evs), kinds(evs2), err)
					}
				}
				if said := failure(evs) == event.Canceled; said != c.Canceled {
					t.Errorf("cancel returned %v, the log has %v: %s", c.Canceled, said, kinds(evs))
				}
				if n := strings.Count(kinds(evs), "done"); n != 1 {
					t.Errorf("%d done events", n)
				}
				mu.Lock()
				if c.Canceled {
					canceled++
				}
				mu.Unlock()
			}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
	if canceled == 0 || canceled == rounds {
		t.Errorf("%d of %d were canceled: the test does not race", canceled, rounds)
	}
	t.Logf("%d of %d canceled", canceled, rounds)
}

// TestConversationsStayOutOfJobs searches River's table for a message.
func TestConversationsStayOutOfJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeltest.Say("hi"))
	r := w.replica(t, nil)
	read(t, r, w.start(t, r, "canary-4711"))
	var n int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM river_job j WHERE j::text LIKE '%canary-4711%'`).Scan(&n); err != nil ||
		n > 0 {
		t.Errorf("%d jobs contain the message (%v)", n, err)
	}
}

func must(b event.Body, err error) event.Body {
	if err != nil {
		panic(errors.Join(errors.New("an event cannot be read"), err))
	}
	return b
}

// pause shifts a race in time; it synchronises nothing.
func pause(d time.Duration) { <-time.After(d) }

// TestWorkspaceRunsAtMostSoManyTurns runs three turns in a workspace with two places. The third
// turn waits and gets the first free place.
func TestWorkspaceRunsAtMostSoManyTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, booking())
	l := newLedger(t, w, false)
	if _, err := w.pool.Exec(t.Context(), `UPDATE workspaces SET max_running = 2`); err != nil {
		t.Fatal(err)
	}
	r := w.replica(t, nil)
	var all []turn.Started
	for range 3 {
		all = append(all, w.start(t, r, "book it"))
	}
	wait.Receive(t, "a call of the tool", l.entered)
	wait.Receive(t, "a call of the tool", l.entered)
	var jobless int
	for jobless == 0 { // the third turn has been rejected
		if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM turns WHERE state = 'queued' AND job_id IS NULL`).Scan(
			&jobless); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.entries(t); n != 2 {
		t.Errorf("%d turns run in a workspace that may run 2", n)
	}
	for range 3 {
		l.leave <- struct{}{}
	}
	for _, st := range all {
		if got := text(read(t, r, st)); got != "Let me see. \n\nAll done." {
			t.Errorf("text %q", got)
		}
	}
}
