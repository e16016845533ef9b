package agent_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/tool"
)

// stepAgent has a tool that needs approval, one that does not and one that is denied.
func stepAgent(once, free *counter) *agent.Agent {
	return &agent.Agent{Model: builtin.New(), Tools: []tool.Tool{once, free, &counter{name: "never", runs: map[string]int{}}}, MaxTurns: 5,
		Log:     slog.New(slog.DiscardHandler),
		Secrets: func(context.Context, string) (string, error) { return "", nil },
		Permit: func(_ context.Context, name string, _ json.RawMessage) (agent.Verdict, error) {
			v := agent.Verdict{Ask: name == "once"}
			if name == "never" {
				v.Denied = "Never."
			}
			return v, nil
		}}
}

// TestAnApprovalShowsItsWholeStep: a call that needs no approval can replace the program that the
// approved call runs. The approval therefore shows that call at its place, and nothing runs before
// the answer.
func TestAnApprovalShowsItsWholeStep(t *testing.T) {
	t.Parallel()
	once, free := &counter{name: "once", runs: map[string]int{}}, &counter{name: "free", runs: map[string]int{}}
	j := &journal{}
	j.write(t, []event.Body{event.Message{Content: `@call free {"write":"run.sh"} never {"n":1} once {"run":"run.sh"} unknown {"n":2} ` +
		`request_secret {"key_name":"KEY","reason":"r"} free {"n":3}`}})
	var ask event.InputRequired
	for group, err := range stepAgent(once, free).Run(t.Context(), agent.Conversation{Log: j.log}) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := group[0].(type) {
		case event.ToolUse:
			t.Errorf("%s begins before the answer", b.Tool)
		case event.InputRequired:
			ask = b
		}
		j.write(t, group)
		if ask.What != "" {
			break
		}
	}
	if len(once.runs) > 0 || len(free.runs) > 0 {
		t.Errorf("ran before the answer: %v, %v", once.runs, free.runs)
	}
	var got []string
	for _, c := range ask.Step() {
		name := c.Tool + " " + string(c.Input)
		if c.Asks {
			name += " asks"
		}
		got = append(got, name)
	}
	want := []string{`free {"write":"run.sh"}`, `once {"run":"run.sh"} asks`, `request_secret {"key_name":"KEY","reason":"r"}`, `free {"n":3}`}
	if len(ask.Operations) != 1 || ask.Operations[0].Position != 3 || !slices.Equal(got, want) {
		t.Errorf("shown are %q, want %q", got, want)
	}
}

// TestACallThatWasNotShownDoesNotRun: an approval covers the calls of a step that it showed.
func TestACallThatWasNotShownDoesNotRun(t *testing.T) {
	t.Parallel()
	for _, shown := range []bool{false, true} {
		once, free := &counter{name: "once", output: "ok", runs: map[string]int{}}, &counter{name: "free", output: "ok", runs: map[string]int{}}
		id, j := uuid.New(), &journal{}
		ask := event.InputRequired{What: event.InputApproval, ApprovalID: id, Operations: []event.Operation{{Position: 2, ToolUseID: "b",
			Tool: "once", Input: json.RawMessage(`{}`)}}}
		if shown {
			ask.OtherCalls = []event.Operation{{Position: 1, ToolUseID: "a", Tool: "free", Input: json.RawMessage(`{}`)}}
		}
		j.write(t, []event.Body{
			event.Message{Content: "@call free {} once {}"},
			event.Reply{Calls: []event.ToolCall{{ID: "a", Tool: "free", Input: json.RawMessage(`{}`)},
				{ID: "b", Tool: "once", Input: json.RawMessage(`{}`)}}},
			ask,
			event.Decision{ApprovalID: id, What: event.InputApproval, Outcome: event.Allowed},
		})
		var all []event.Body
		for group, err := range stepAgent(once, free).Run(t.Context(), agent.Conversation{Log: j.log}) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, group...)
		}
		_, results := calls(all)
		if results["a"].OK != shown || len(free.runs) > 0 != shown || !results["b"].OK {
			t.Errorf("shown %v: %+v, ran %v", shown, results, free.runs)
		}
	}
}
