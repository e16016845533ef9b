package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/tool"
)

// own is a tool of the caller.
type own string

func (o own) Spec() tool.Spec {
	return tool.Spec{Name: string(o), Schema: json.RawMessage(`{"type":"object"}`), Caller: true}
}

func (own) Call(context.Context, tool.Call) (tool.Result, error) { panic("the caller runs it") }

// later is a tool whose server accepts a call and answers later.
type later struct{ counter }

func (l *later) Spec() tool.Spec {
	s := l.counter.Spec()
	s.Later = true
	return s
}

func (l *later) Call(_ context.Context, c tool.Call) (tool.Result, error) {
	l.runs[c.ID]++
	return tool.Result{}, tool.Later{}
}

// answerAll posts a result for each call that a question waits for, or lets the question expire.
func answerAll(t *testing.T, j *journal, q event.Question, outcome event.Outcome) {
	t.Helper()
	var waits []event.PendingCall
	id := uuid.Must(uuid.NewV7())
	switch b := q.(type) {
	case event.ToolRequired:
		b.ApprovalID, waits = id, b.Calls
		q = b
	case event.ToolLater:
		b.ApprovalID, waits = id, b.Calls
		q = b
	case event.ConnectRequired:
		b.ApprovalID = id
		q = b
	default:
		t.Fatalf("the turn asks %v", q)
	}
	j.write(t, []event.Body{q.Expiring(time.Time{}.Add(10 * time.Minute))})
	for _, c := range waits {
		if outcome == event.Provided {
			j.write(t, []event.Body{event.ToolReply{ToolUseID: c.ToolUseID, OK: true, Output: c.Tool + " " + string(c.Input)}})
		}
	}
	j.write(t, []event.Body{event.Decision{ApprovalID: id, Outcome: outcome}})
}

// drive runs a turn to its end, answers its questions, and kills it once at its n-th group of
// events, before the commit if lost is set. It returns the committed events without the questions.
func drive(t *testing.T, j *journal, n int, lost bool, outcome event.Outcome, tools ...tool.Tool) (bodies []event.Body, killed bool) {
	t.Helper()
	for range 20 {
		a := &agent.Agent{Model: builtin.New(), Tools: tools, MaxTurns: 10, Log: slog.New(slog.DiscardHandler)}
		again := false
		for group, err := range a.Run(t.Context(), agent.Conversation{Log: slices.Clone(j.log), Shown: j.shown, Tail: j.tail, Budget: 1000}) {
			if err != nil {
				t.Fatal(err)
			}
			n--
			if again = n == 0 && lost; again {
				killed = true
				break
			}
			if q, ok := group[0].(event.Question); ok {
				answerAll(t, j, q, outcome)
				bodies, again = append(bodies, q), true
				break
			}
			bodies = append(bodies, group...)
			j.write(t, group)
			if again = n == 0; again {
				killed = true
				break
			}
		}
		if !again {
			return bodies, killed
		}
	}
	t.Fatal("the turn does not end")
	return nil, false
}

// TestCallersToolsAtEveryEvent kills a turn with a mixed batch at each of its events. Each call
// begins once and has one result, the server's calls come first, and the caller is asked for all of
// its calls at once.
func TestCallersToolsAtEveryEvent(t *testing.T) {
	t.Parallel()
	const mixed = "@call mine {\"n\":1} once {\"n\":2} slow {\"n\":3} mine {\"n\":4}\n@say Done."
	for _, lost := range []bool{false, true} {
		for n := 1; ; n++ {
			once := &counter{name: "once", output: "ok", runs: map[string]int{}}
			slow := &later{counter{name: "slow", runs: map[string]int{}}}
			j := &journal{}
			j.write(t, []event.Body{event.Message{Content: mixed}})
			bodies, killed := drive(t, j, n, lost, event.Provided, once, slow, own("mine"))
			at := fmt.Sprintf("killed at group %d (lost: %v)", n, lost)
			uses, results := calls(bodies)
			if len(uses) != 4 || len(results) != 4 || text(bodies) != "Done." {
				t.Fatalf("%s: %d calls began, %d have results, the text is %q", at, len(uses), len(results), text(bodies))
			}
			asked := 0
			for i, b := range bodies {
				if q, ok := b.(event.ToolRequired); ok {
					asked++
					_, before := calls(bodies[:i])
					if len(q.Calls) != 2 || len(before) != 2 {
						t.Errorf("%s: asked for %d calls after %d results", at, len(q.Calls), len(before))
					}
				}
			}
			if asked != 1 {
				t.Errorf("%s: asked %d times", at, asked)
			}
			for id, times := range uses {
				if r := results[id]; times != 1 || r.Tool == "mine" && (!r.OK || !strings.HasPrefix(r.Output, `mine {"n":`)) ||
					r.Tool == "slow" && !killed && r.Output != `slow {"n":3}` {
					t.Errorf("%s: call %s began %d times and has %+v", at, id, times, r)
				}
			}
			for id, times := range slow.runs {
				if times != 1 {
					t.Errorf("%s: call %s reached the server %d times", at, id, times)
				}
			}
			if !killed {
				break
			}
		}
	}
}

// TestUnansweredCallsFail: calls without a result fail when the question has expired.
func TestUnansweredCallsFail(t *testing.T) {
	t.Parallel()
	j := &journal{}
	j.write(t, []event.Body{event.Message{Content: "@call mine slow\n@say Done."}})
	slow := &later{counter{name: "slow", runs: map[string]int{}}}
	bodies, _ := drive(t, j, -1, false, event.Expired, slow, own("mine"))
	_, results := calls(bodies)
	for _, r := range results {
		if r.OK || !strings.HasPrefix(r.Output, "The tool gave no result within ") {
			t.Errorf("%s has %+v", r.Tool, r)
		}
	}
	if len(results) != 2 {
		t.Errorf("%d results", len(results))
	}
}

// TestAnApprovalAndACallersToolInOneStep: the step is approved first, and the approval shows the
// caller's call.
func TestAnApprovalAndACallersToolInOneStep(t *testing.T) {
	t.Parallel()
	once := &counter{name: "once", output: "ok", runs: map[string]int{}}
	j := &journal{}
	j.write(t, []event.Body{event.Message{Content: "@call mine {\"n\":1} once {\"n\":2}\n@say Done."}})
	run := func() (last event.Body) {
		a := &agent.Agent{Model: builtin.New(), Tools: []tool.Tool{once, own("mine")}, MaxTurns: 5, Log: slog.New(slog.DiscardHandler),
			Permit: func(_ context.Context, name string, _ json.RawMessage) (agent.Verdict, error) {
				return agent.Verdict{Ask: name == "once"}, nil
			}}
		for group, err := range a.Run(t.Context(), agent.Conversation{Log: slices.Clone(j.log), Shown: j.shown, Tail: j.tail, Budget: 1000}) {
			if err != nil {
				t.Fatal(err)
			}
			if last = group[0]; isQuestion(last) {
				break
			}
			j.write(t, group)
		}
		return last
	}
	ask, ok := run().(event.InputRequired)
	if !ok || len(ask.Operations) != 1 || len(ask.OtherCalls) != 1 || ask.OtherCalls[0].Tool != "mine" {
		t.Fatalf("the approval is %+v", ask)
	}
	ask.ApprovalID = uuid.Must(uuid.NewV7())
	j.write(t, []event.Body{ask, event.Decision{ApprovalID: ask.ApprovalID, What: event.InputApproval, Outcome: event.Allowed}})
	q, ok := run().(event.ToolRequired)
	if !ok || len(q.Calls) != 1 || len(once.runs) != 1 {
		t.Fatalf("after the approval: %+v, and the approved call ran %d times", q, len(once.runs))
	}
	answerAll(t, j, q, event.Provided)
	run()
	var bodies []event.Body
	for _, ev := range j.log {
		b, err := ev.Body()
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, b)
	}
	if uses, results := calls(bodies); len(uses) != 2 || len(results) != 2 {
		t.Errorf("%d calls began, %d have results", len(uses), len(results))
	}
}

func isQuestion(b event.Body) bool {
	_, ok := b.(event.Question)
	return ok
}

// TestAnEarlyResultIsUsed: the server of a tool was faster than the turn, which then lost its
// replica. The result that was posted is the result of the call.
func TestAnEarlyResultIsUsed(t *testing.T) {
	t.Parallel()
	slow, j := &later{counter{name: "slow", runs: map[string]int{}}}, &journal{}
	j.write(t, []event.Body{event.Message{Content: "@call slow\n@say Done."}})
	a := &agent.Agent{Model: builtin.New(), Tools: []tool.Tool{slow}, MaxTurns: 5, Log: slog.New(slog.DiscardHandler)}
	for group, err := range a.Run(t.Context(), agent.Conversation{Log: slices.Clone(j.log)}) {
		if err != nil {
			t.Fatal(err)
		}
		j.write(t, group)
		if use, ok := group[0].(event.ToolUse); ok {
			j.write(t, []event.Body{event.ToolReply{ToolUseID: use.ToolUseID, OK: true, Output: "early"}})
			break
		}
	}
	bodies, _ := drive(t, j, -1, false, event.Provided, slow)
	_, results := calls(bodies)
	for _, r := range results {
		if !r.OK || r.Output != "early" || len(slow.runs) > 0 {
			t.Errorf("%+v, and the call reached the server %d times", r, len(slow.runs))
		}
	}
	if len(results) != 1 {
		t.Errorf("%d results", len(results))
	}
}

// recognized is a tool whose receiver recognizes repeated calls by their ids.
type recognized struct{ counter }

func (r *recognized) Spec() tool.Spec {
	s := r.counter.Spec()
	s.UniqueID = true
	return s
}

// TestIdsThatReceiversSeeAreUnique runs two turns whose models use the same ids.
func TestIdsThatReceiversSeeAreUnique(t *testing.T) {
	t.Parallel()
	x, other := &recognized{counter{name: "x", runs: map[string]int{}}}, &counter{name: "other", runs: map[string]int{}}
	for range 2 {
		j := &journal{}
		j.write(t, []event.Body{event.Message{Content: "Go."}})
		a := &agent.Agent{Model: repeating{}, Tools: []tool.Tool{x, other}, MaxTurns: 10, Log: slog.New(slog.DiscardHandler)}
		for group, err := range a.Run(t.Context(), agent.Conversation{Log: slices.Clone(j.log), Budget: 1000}) {
			if err != nil {
				t.Fatal(err)
			}
			j.write(t, group)
		}
	}
	if len(x.runs) != 2 || other.runs["same2"] != 2 {
		t.Errorf("ids: %v, of another tool: %v", x.runs, other.runs)
	}
}

// repeating is a model that calls two tools first, with the same ids in each turn.
type repeating struct{}

func (repeating) Name() string { return "repeating" }

func (repeating) Generate(_ context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if last := req.Messages[len(req.Messages)-1]; last.Role == model.User {
			for i, name := range []string{"x", "other"} {
				if !yield(model.Chunk{Call: &event.ToolCall{ID: fmt.Sprintf("same%d", i+1), Tool: name, Input: json.RawMessage(`{}`)}}, nil) {
					return
				}
			}
			yield(model.Chunk{Stop: model.StopTools, Usage: &model.Usage{}}, nil)
			return
		}
		yield(model.Chunk{Text: "Done.", Stop: model.StopEnd, Usage: &model.Usage{}}, nil)
	}
}
