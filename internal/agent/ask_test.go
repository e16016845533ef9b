package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/tool"
)

// answered runs an agent with approvals to its end and kills it at its n-th group of events;
// outcome decides every approval. It returns the committed events.
func answered(t *testing.T, command string, n int, lost bool, outcome event.Outcome, tools ...tool.Tool) (all []event.Body, killed bool) {
	t.Helper()
	a := &agent.Agent{Model: builtin.New(), Tools: tools, MaxTurns: 20, Log: slog.New(slog.DiscardHandler),
		Permit: func(_ context.Context, name string, _ json.RawMessage) (agent.Verdict, error) {
			return agent.Verdict{Ask: name == "once", Pattern: name + "(*)"}, nil
		},
		Secrets: func(_ context.Context, name string) (string, error) {
			if name != "KEY" {
				return "There is only KEY.", nil
			}
			return "", nil
		},
	}
	j := &journal{}
	j.write(t, []event.Body{event.Message{Content: command}})
	commit := func(bodies ...event.Body) {
		all = append(all, bodies...)
		j.write(t, bodies)
	}
	for range 50 {
		again := false
		for group, err := range a.Run(t.Context(), agent.Conversation{Log: slices.Clone(j.log), Shown: j.shown, Tail: j.tail, Budget: 1000}) {
			if err != nil {
				t.Fatal(err)
			}
			n--
			if n == 0 && lost {
				again, killed = true, true
				break
			}
			if ask, ok := group[0].(event.InputRequired); ok {
				ask.ApprovalID = uuid.New()
				commit(ask)
				said := outcome
				if ask.What == event.InputSecret {
					said = map[event.Outcome]event.Outcome{event.Allowed: event.Provided, event.Denied: event.Skipped,
						event.Expired: event.Expired}[outcome]
				}
				commit(event.Decision{ApprovalID: ask.ApprovalID, What: ask.What, Outcome: said, Reason: "because"})
				again = true
				break
			}
			commit(group...)
			if n == 0 {
				again, killed = true, true
				break
			}
		}
		if !again {
			return all, killed
		}
	}
	t.Fatal("the turn does not end")
	return nil, false
}

const asking = "@say First I look, then I act.\n" +
	`@call free {"n":0} once {"n":1} once {"n":2}` + "\n" +
	`@call request_secret {"key_name":"KEY","reason":"r"}` + "\n" +
	`@call once {"n":3}` + "\n@say This was everything.\n"

func asks(bodies []event.Body) (list []event.InputRequired) {
	for _, b := range bodies {
		if ask, ok := b.(event.InputRequired); ok {
			list = append(list, ask)
		}
	}
	return list
}

// TestCrashWhileAsking kills a turn with approvals at each of its events. Every approval is
// requested once, and every call that runs was allowed with the same arguments and runs once.
func TestCrashWhileAsking(t *testing.T) {
	t.Parallel()
	slow.Test(t, "crashes at every event")
	for _, outcome := range []event.Outcome{event.Allowed, event.Denied, event.Expired} {
		for _, lost := range []bool{false, true} {
			for n := 1; ; n++ {
				once := &counter{name: "once", output: "ok", runs: map[string]int{}}
				free := &counter{name: "free", idempotent: true, output: "ok", runs: map[string]int{}}
				all, killed := answered(t, asking, n, lost, outcome, once, free)
				at := fmt.Sprintf("%s, killed at group %d (lost: %v)", outcome, n, lost)
				list := asks(all)
				if len(list) != 3 || len(list[0].Operations) != 2 || list[1].KeyName != "KEY" || len(list[2].Operations) != 1 {
					t.Fatalf("%s: the approvals are %+v", at, list)
				}
				if op := list[0].Operations[1]; string(op.Input) != `{"n":2}` || op.SuggestedPattern != "once(*)" ||
					list[0].Plan != "First I look, then I act." {
					t.Errorf("%s: the approval is %+v", at, list[0])
				}
				if len(once.runs) > 3 || outcome != event.Allowed && len(once.runs) > 0 {
					t.Errorf("%s: ran %v", at, once.runs)
				}
				uses, results := calls(all)
				if len(uses) != 5 || len(results) != 5 {
					t.Errorf("%s: %d calls began, %d have results", at, len(uses), len(results))
				}
				for id, times := range once.runs {
					if times != 1 || uses[id] != 1 {
						t.Errorf("%s: call %s began %d times and ran %d times", at, id, uses[id], times)
					}
				}
				for _, r := range results {
					interrupted := killed && r.Output == "interrupted, outcome unknown"
					if want := outcome == event.Allowed || r.Tool == "free"; r.OK != want && !interrupted {
						t.Errorf("%s: result %+v", at, r)
					}
				}
				if !strings.HasSuffix(text(all), "This was everything.") {
					t.Errorf("%s: the text is %q", at, text(all))
				}
				if !killed {
					break
				}
			}
		}
	}
}

// An approval covers the arguments it showed: other arguments under the same id need another
// approval.
func TestApprovalIsForTheseArguments(t *testing.T) {
	t.Parallel()
	once := &counter{name: "once", output: "ok", runs: map[string]int{}}
	a := &agent.Agent{Model: builtin.New(), Tools: []tool.Tool{once}, MaxTurns: 5, Log: slog.New(slog.DiscardHandler),
		Permit: func(context.Context, string, json.RawMessage) (agent.Verdict, error) {
			return agent.Verdict{Ask: true}, nil
		}}
	id := uuid.New()
	j := &journal{}
	j.write(t, []event.Body{
		event.Message{Content: `@call once {"n":2}`},
		event.Reply{Calls: []event.ToolCall{{ID: "c", Tool: "once", Input: json.RawMessage(`{"n":2}`)}}},
		event.InputRequired{What: event.InputApproval, ApprovalID: id, Operations: []event.Operation{{ToolUseID: "c", Tool: "once",
			Input: json.RawMessage(`{"n":1}`)}}},
		event.Decision{ApprovalID: id, What: event.InputApproval, Outcome: event.Allowed},
	})
	for group, err := range a.Run(t.Context(), agent.Conversation{Log: j.log}) {
		if ask, ok := group[0].(event.InputRequired); err != nil || !ok || string(ask.Operations[0].Input) != `{"n":2}` {
			t.Errorf("%v, %v", group, err)
		}
		break
	}
	if len(once.runs) > 0 {
		t.Error("the call ran")
	}
}

func TestUnknownSecretIsNotAskedFor(t *testing.T) {
	t.Parallel()
	all, _ := answered(t, `@call request_secret {"key_name":"OTHER","reason":"r"} request_secret {"reason":"r"}`+"\n@say No.", -1, false,
		event.Allowed)
	_, results := calls(all)
	said := fmt.Sprint(results)
	if len(asks(all)) != 0 || len(results) != 2 || !strings.Contains(said, "There is only KEY.") ||
		!strings.Contains(said, "request_secret takes") {
		t.Errorf("%v", all)
	}
}

// The result for the model does not name a kind of decider that is not certain: a program can
// answer with a key as well as a human.
func TestDenialsSayWhatHappened(t *testing.T) {
	t.Parallel()
	asked := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	for _, c := range []struct {
		decision event.Decision
		window   time.Duration
		want     string
	}{
		{event.Decision{Outcome: event.Denied}, time.Hour, "This was denied, so it was not done."},
		{event.Decision{Outcome: event.Denied, Reason: "Not before Monday."}, time.Hour, "This was denied: Not before Monday."},
		{event.Decision{Outcome: event.Expired}, 10*time.Minute - time.Millisecond,
			"The approval was not answered within 10 minutes, so this was not done."},
		{event.Decision{Outcome: event.Expired}, time.Minute, "The approval was not answered within a minute, so this was not done."},
		{event.Decision{Outcome: event.Expired}, 90 * time.Second, "The approval was not answered within 90 seconds, so this was not done."},
		{event.Decision{Outcome: event.Expired}, 300 * time.Millisecond, "The approval was not answered in time, so this was not done."},
	} {
		once := &counter{name: "once", output: "ok", runs: map[string]int{}}
		a := &agent.Agent{Model: builtin.New(), Tools: []tool.Tool{once}, MaxTurns: 5, Log: slog.New(slog.DiscardHandler)}
		id, j := uuid.New(), &journal{}
		c.decision.ApprovalID, c.decision.What = id, event.InputApproval
		j.write(t, []event.Body{
			event.Message{Content: `@call once {"n":2}`},
			event.Reply{Calls: []event.ToolCall{{ID: "c", Tool: "once", Input: json.RawMessage(`{"n":2}`)}}},
			event.InputRequired{What: event.InputApproval, ApprovalID: id, ExpiresAt: asked.Add(c.window),
				Operations: []event.Operation{{ToolUseID: "c", Tool: "once", Input: json.RawMessage(`{"n":2}`)}}},
			c.decision,
		})
		j.log[2].At = asked
		var all []event.Body
		for group, err := range a.Run(t.Context(), agent.Conversation{Log: j.log}) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, group...)
		}
		if _, results := calls(all); len(results) != 1 || results["c"].Output != c.want || len(once.runs) > 0 {
			t.Errorf("%+v: %+v, ran %v", c.decision, results, once.runs)
		}
	}
}
