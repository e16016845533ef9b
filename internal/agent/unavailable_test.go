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

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/tool"
)

// absent is a tool that cannot be used on this server.
type absent struct{ counter }

func (a *absent) Spec() tool.Spec {
	s := a.counter.Spec()
	s.Unavailable = "absent: there is no sandbox."
	return s
}

// refusing is a tool that returns its errors to the model.
type refusing struct{ counter }

func (r *refusing) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, fmt.Errorf("do it: %w", tool.Refusal("Use another tool."))
}

// listening records the tools that the model is offered.
type listening struct {
	model.Model
	offered map[string]bool
}

func (l listening) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	for _, t := range req.Tools {
		l.offered[t.Name] = true
	}
	return l.Model.Generate(ctx, req)
}

func TestUnavailableToolsAreAnsweredAndNobodyIsAsked(t *testing.T) {
	t.Parallel()
	gone := &absent{counter{name: "gone", runs: map[string]int{}}}
	no := &refusing{counter{name: "no", runs: map[string]int{}}}
	l := listening{builtin.New(), map[string]bool{}}
	a := &agent.Agent{Model: l, Tools: []tool.Tool{gone, no}, MaxTurns: 5, Log: slog.New(slog.DiscardHandler),
		Permit: func(_ context.Context, name string, _ json.RawMessage) (agent.Verdict, error) {
			return agent.Verdict{Ask: name == "gone"}, nil
		}}
	j := &journal{}
	j.write(t, []event.Body{event.Message{Content: "@call gone {} no {}"}})
	var all []event.Body
	for group, err := range a.Run(t.Context(), agent.Conversation{Log: slices.Clone(j.log), Budget: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, group...)
	}
	_, results := calls(all)
	said := fmt.Sprint(results)
	if len(asks(all)) != 0 || len(results) != 2 || !strings.Contains(said, "absent: there is no sandbox.") ||
		!strings.Contains(said, "Use another tool.") {
		t.Errorf("%v", all)
	}
	if l.offered["gone"] || !l.offered["no"] || len(gone.runs) > 0 {
		t.Errorf("offered %v, ran %v", l.offered, gone.runs)
	}
}

// strict is a tool with one member.
type strict struct{ counter }

func (s *strict) Spec() tool.Spec {
	spec := s.counter.Spec()
	spec.Schema = json.RawMessage(`{"type":"object","properties":{"page":{"type":"string"}},"additionalProperties":false}`)
	return spec
}

// A call with input that its tool would reject is answered without an approval.
func TestUnknownMembersNeedNoApproval(t *testing.T) {
	t.Parallel()
	a := &agent.Agent{Model: builtin.New(), Tools: []tool.Tool{&strict{counter{name: "write", runs: map[string]int{}}}}, MaxTurns: 5,
		Log: slog.New(slog.DiscardHandler),
		Permit: func(context.Context, string, json.RawMessage) (agent.Verdict, error) {
			return agent.Verdict{Ask: true}, nil
		}}
	for input, want := range map[string]string{
		`{"page":"good","Page":"evil"}`: `Unknown member "Page". Names are matched exactly; leave it out.`,
		`{"page":"good"}`:               "",
	} {
		j := &journal{}
		j.write(t, []event.Body{event.Message{Content: "@call write " + input}})
		got, asked := "", false
		for bodies, err := range a.Run(t.Context(), agent.Conversation{Log: j.log}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range bodies {
				switch b := b.(type) {
				case event.InputRequired:
					asked = true
				case event.ToolResult:
					got = b.Output
				}
			}
			if asked {
				break
			}
			j.write(t, bodies)
		}
		if got != want || asked != (want == "") {
			t.Errorf("%s: approval requested %v, result %q, want %q", input, asked, got, want)
		}
	}
}
