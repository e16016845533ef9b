package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// namedModel is a model that fails, or answers with its name. It can show text before it fails.
type namedModel struct {
	name   string
	before string
	err    error
	calls  *[]string
}

// Name implements model.Model.
func (m namedModel) Name() string { return m.name }

// Generate implements model.Model.
func (m namedModel) Generate(context.Context, model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		*m.calls = append(*m.calls, m.name)
		if m.before != "" && !yield(model.Chunk{Text: m.before}, nil) {
			return
		}
		if m.err != nil {
			yield(model.Chunk{}, m.err)
			return
		}
		if yield(model.Chunk{Text: "I am " + m.name}, nil) {
			yield(model.Chunk{Stop: model.StopEnd, Usage: &model.Usage{InputTokens: 1_000_000}}, nil)
		}
	}
}

var (
	noQuota    = &model.Error{Code: event.ModelError, Message: "no quota", Admin: true}
	noContent  = &model.Error{Code: event.ContentRefused, Message: "refused"}
	overloaded = &model.Error{Code: event.ModelOverloaded, Message: "overloaded", Retryable: true, RetryAfter: 1 << 40}
)

// TestFallbackModelsAnswer has models that fail for several reasons, before and after the first text
// of a step. Each fallback is an event; the turn costs what the model costs that answered; and a
// model whose price is not known never answers under a limit in US dollars.
func TestFallbackModelsAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		first   namedModel
		limit   *float64
		answers string // the model; "": the turn fails
		events  string
	}{
		{"overloaded", namedModel{err: overloaded}, nil, "vllm/free", "a/first>vllm/free overloaded"},
		{"no quota", namedModel{err: noQuota}, nil, "vllm/free", "a/first>vllm/free not_usable"},
		{"refused content", namedModel{err: noContent}, nil, "", ""},
		{"after text", namedModel{before: "Once upon", err: noQuota}, nil, "", ""},
		{"with a limit", namedModel{err: noQuota}, new(0.5), "openai/gpt-5-mini", "a/first>openai/gpt-5-mini not_usable"},
		{"answered", namedModel{}, nil, "a/first", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var calls []string
			c.first.name, c.first.calls = "a/first", &calls
			a := &agent.Agent{Model: c.first, MaxTurns: 3, MaxCostUSD: c.limit, Log: slog.New(slog.DiscardHandler),
				Fallbacks: []model.Model{namedModel{name: "vllm/free", calls: &calls}, namedModel{name: "openai/gpt-5-mini", calls: &calls}},
				Catalog:   model.NewCatalog([]model.Entry{{Name: "a/first", Rates: &model.Rates{}}}),
			}
			evs, failed := runFallback(t, a, nil)
			if (c.answers == "") != (failed != nil) {
				t.Fatalf("failed with %v", failed)
			}
			if got := fallbacks(evs); got != c.events {
				t.Errorf("the fallbacks are %q, want %q", got, c.events)
			}
			if reply, ok := lastReply(evs); c.answers != "" && (!ok || reply.Usage.Model != c.answers || !strings.HasSuffix(reply.Text, c.answers)) {
				t.Errorf("the reply is %+v, want one of %s", reply, c.answers)
			} else if c.limit != nil && (reply.Usage.CostUSD == nil || *reply.Usage.CostUSD != 0.25) {
				t.Errorf("the cost is %v, want 0.25", reply.Usage.CostUSD)
			}
		})
	}
}

// TestFallbackIsKeptWhenATurnResumes runs an agent on a log with a fallback: the replaced model is
// not called again in the turn.
func TestFallbackIsKeptWhenATurnResumes(t *testing.T) {
	t.Parallel()
	var calls []string
	a := &agent.Agent{Model: namedModel{name: "a/first", err: noQuota, calls: &calls}, MaxTurns: 3, Log: slog.New(slog.DiscardHandler),
		Fallbacks: []model.Model{namedModel{name: "b/second", err: noQuota, calls: &calls}, namedModel{name: "c/third", calls: &calls}}}
	evs, failed := runFallback(t, a, []event.Body{event.ModelFallback{From: "a/first", To: "b/second", Reason: event.NotUsable}})
	if got := strings.Join(calls, " "); failed != nil || got != "b/second c/third" {
		t.Errorf("the models %s were called, %v", got, failed)
	}
	if got := fallbacks(evs); got != "b/second>c/third not_usable" {
		t.Errorf("the fallbacks are %q", got)
	}
}

// runFallback runs a turn that has the rows of a log.
func runFallback(t *testing.T, a *agent.Agent, log []event.Body) (evs []event.Body, failed error) {
	t.Helper()
	var c agent.Conversation
	for _, b := range append([]event.Body{event.Message{Content: "hello"}}, log...) {
		data, err := event.Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		c.Log = append(c.Log, event.Event{Kind: b.Kind(), Data: data})
	}
	for bodies, err := range a.Run(t.Context(), c) {
		if err != nil {
			if _, ok := errors.AsType[*agent.Failure](err); !ok {
				t.Fatal(err)
			}
			return evs, err
		}
		evs = append(evs, bodies...)
	}
	return evs, nil
}

func fallbacks(evs []event.Body) string {
	var list []string
	for _, b := range evs {
		if f, ok := b.(event.ModelFallback); ok {
			list = append(list, f.From+">"+f.To+" "+string(f.Reason))
		}
	}
	return strings.Join(list, ", ")
}

func lastReply(evs []event.Body) (r event.Reply, ok bool) {
	for _, b := range evs {
		if reply, is := b.(event.Reply); is {
			r, ok = reply, true
		}
	}
	return r, ok
}

// costlyModel calls a tool in every reply, and fails in some with an error that a fallback answers.
type costlyModel struct {
	name   string
	random *rand.Rand
}

func (m costlyModel) Name() string { return m.name }

func (m costlyModel) Generate(context.Context, model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if m.random.IntN(4) == 0 {
			yield(model.Chunk{}, noQuota)
			return
		}
		call := &event.ToolCall{ID: fmt.Sprint("c", m.random.IntN(1000)), Tool: "absent", Input: json.RawMessage(`{}`)}
		usage := &model.Usage{InputTokens: 1 + m.random.Int64N(500_000), OutputTokens: m.random.Int64N(50_000)}
		yield(model.Chunk{Call: call, Usage: usage, Stop: model.StopTools}, nil)
	}
}

// TestLimitIsExceededByOneStepAtMost runs turns with random costs and fallbacks under random limits:
// before the last step of a turn, its cost was below the limit, whichever models answered.
func TestLimitIsExceededByOneStepAtMost(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	fell, ended := 0, 0
	for range 300 {
		limit := random.Float64() * 5
		a := &agent.Agent{Model: costlyModel{"openai/gpt-5", random}, MaxTurns: 50, MaxCostUSD: &limit, Log: slog.New(slog.DiscardHandler),
			Fallbacks: []model.Model{costlyModel{"vllm/unpriced", random}, costlyModel{"openai/gpt-4o", random},
				costlyModel{"anthropic/claude-haiku-4-5", random}}}
		evs, failed := runFallback(t, a, nil)
		var spent, last float64
		for _, b := range evs {
			switch b := b.(type) {
			case event.Reply:
				if b.Usage.CostUSD == nil {
					t.Fatalf("%s answered without a price", b.Usage.Model)
				}
				last = *b.Usage.CostUSD
				spent += last
			case event.ModelFallback:
				fell++
			}
		}
		if spent-last >= limit {
			t.Errorf("a turn spent %.4f before its last step, and its limit is %.4f", spent-last, limit)
		}
		if f, ok := errors.AsType[*agent.Failure](failed); ok && f.Code == event.BudgetExceeded && spent >= limit {
			ended++
		}
	}
	if fell < 100 || ended < 50 {
		t.Errorf("only %d fallbacks and %d turns at their limit", fell, ended)
	}
}
