package turn_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/openai"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/turn"
)

// TestLimitsNeedAPrice sends messages to a model whose price is not known. A limit in US dollars is
// never ignored: that of a message rejects it, that of an agent ends the turn before the model is
// called. A catalog with the price accepts both.
func TestLimitsNeedAPrice(t *testing.T) {
	t.Parallel()
	script := &modeltest.Script{Answer: func(modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Text: []string{"yes"}, Usage: sixty}
	}}
	w := newWorld(t, script)
	provider := modeltest.OpenAI(script)
	t.Cleanup(provider.Close)
	w.model = openai.New(openai.Config{Model: "llama", Provider: "vllm", BaseURL: provider.URL + "/v1", HTTPClient: provider.Client()})
	limited := turn.Limits{MaxCostUSD: new(0.5)}
	r := w.replica(t, nil)
	_, err := r.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Command: "go", Key: "k", Limits: limited})
	if f := fault.From(err); f == nil || f.Code != fault.InvalidRequestBody || len(f.Detail.Violations) != 1 ||
		f.Detail.Violations[0].Param != "/limits/max_cost_usd" || !strings.Contains(f.Detail.Violations[0].Message, "vllm/llama is not known") {
		t.Fatalf("a message with a limit: %v", err)
	}
	if n := len(script.Requests()); n != 0 {
		t.Errorf("the model was called %d times", n)
	}
	free := read(t, r, w.start(t, r, "go"))
	if failure(free) != "" {
		t.Errorf("a message without a limit: %s", kinds(free))
	}
	called := len(script.Requests())
	w.limitAgent(t, 0.5)
	ended := read(t, r, w.start(t, r, "go"))
	if failure(ended) != event.BudgetExceeded || len(script.Requests()) != called {
		t.Errorf("an agent with a limit: %s, %d calls of the model", kinds(ended), len(script.Requests())-called)
	}
	priced := w.replica(t, func(c *turn.Config) {
		c.Catalog = model.NewCatalog([]model.Entry{{Name: "vllm/*", Rates: &model.Rates{Input: 1, Output: 1}}})
	})
	r.stop()
	for _, limits := range []turn.Limits{{}, limited} {
		st, err := priced.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Command: "go", Key: "k", Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		if evs := read(t, priced, st); failure(evs) != "" {
			t.Errorf("with a price and the limits %+v: %s", limits, kinds(evs))
		}
	}
}

// limitAgent limits the cost of every turn of the default agent.
func (w *world) limitAgent(t testing.TB, usd float64) {
	t.Helper()
	d := agent.Defaults()
	d.Limits.MaxCostUSD = &usd
	if _, err := agent.New(w.pool).PublishDefinition(t.Context(), agent.Edit{Workspace: w.workspace.ID}, d, ""); err != nil {
		t.Fatal(err)
	}
}
